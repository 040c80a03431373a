//! Builds the metadata of the model's GGUF file from the folder's JSON files. Members that only some
//! architectures have are in their declarations.

use serde_json::Value;

use super::{rope, sentence_transformers::Pipeline};
use crate::{
    Error, Result,
    model::{
        architectures::{self, Architecture, Names},
        config::{
            Activation, ConfigJson, FeedForwardKind, LayerRope, Mixing, ModelConfig,
            embedding::{CLASSIFIER, OUTPUT_LABELS, POOLING_TYPE, RANK},
        },
    },
    weights::{Metadata, MetadataArray, MetadataValue},
};

/// Integer members of a Llama's `config.json`, and their metadata keys without the architecture.
const SIZES: Names = &[
    ("num_hidden_layers", "block_count"),
    ("max_position_embeddings", "context_length"),
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
];

/// The other numeric members, and their metadata keys without the architecture.
const NUMBERS: Names = &[("rms_norm_eps", "attention.layer_norm_rms_epsilon")];

/// The architecture of a `config.json`, which is brought to the form of Llama's, and the metadata.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming what this build does not support, [`Error::InvalidModelFile`] for
/// members of the wrong type.
pub fn read(
    config: &mut ConfigJson,
    pipeline: Option<&Pipeline>,
) -> Result<(&'static Architecture, Metadata)> {
    let architecture = architectures::find_by_config(config)?;
    (architecture.read_json)(config)?;
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", architecture.name);
    let name = |key: &str| format!("{}.{key}", architecture.name);
    if let Some(pipeline) = pipeline {
        pipeline.add(&mut metadata, architecture.name);
    } else if let Some(labels) = classes(architecture, config)? {
        metadata.insert(name(POOLING_TYPE), RANK);
        metadata.insert(name(OUTPUT_LABELS), MetadataArray::String(labels));
    }
    for (member, key) in SIZES.iter().chain(architecture.json_sizes) {
        if let Some(value) = config.size(member)? {
            metadata.insert(name(key), value);
        }
    }
    for (member, key) in NUMBERS.iter().chain(architecture.json_numbers) {
        if let Some(value) = config.number(member)? {
            metadata.insert(name(key), value as f32);
        }
    }
    let head_dim = config.head_dim()?;
    metadata.insert(name("attention.key_length"), head_dim);
    metadata.insert(name("attention.value_length"), head_dim);
    let uses_window = config.bool("use_sliding_window")?.unwrap_or(true);
    if let Some(window) = config.size("sliding_window")?.filter(|_| uses_window) {
        metadata.insert(name("attention.sliding_window"), window);
    }
    rope::add(&mut metadata, architecture, config)?;
    (architecture.add_keys)(config, &mut |key, value| {
        metadata.insert(name(key), value);
    })?;
    // The number of tokens makes no difference here. The loader reports what the configuration lacks.
    if let Ok(model) = architectures::configure(&metadata, Some(1)) {
        check(config, &model)?;
    }
    Ok((architecture, metadata))
}

/// The labels of the classifier that a folder holds, if the architecture has one.
pub fn classes(architecture: &Architecture, config: &ConfigJson) -> Result<Option<Vec<String>>> {
    let [_, output] = CLASSIFIER;
    let mut names = architecture.tensors.iter().copied().flatten();
    let classes = config.get("architectures").and_then(|it| it[0].as_str());
    let is_classifier = classes.is_some_and(|it| it.ends_with("ForSequenceClassification"));
    if !is_classifier || !names.any(|(_, gguf)| *gguf == output) {
        return Ok(None);
    }
    let labels = config.get("id2label").and_then(Value::as_object);
    let count = labels.map_or(config.size("num_labels")?.unwrap_or(2) as usize, |it| {
        it.len()
    });
    let label = |class: usize| {
        let name = labels.and_then(|labels| labels.get(&class.to_string())?.as_str());
        name.map_or(format!("LABEL_{class}"), str::to_owned)
    };
    const MOST: usize = 1024;
    Ok(Some((0..count.min(MOST)).map(label).collect()))
}

/// Refuses a folder whose layers differ from those of its architecture.
fn check(config: &ConfigJson, model: &ModelConfig) -> Result<()> {
    // If both are present, the second one is used.
    let key = match config.get("hidden_activation") {
        Some(_) => "hidden_activation",
        None => "hidden_act",
    };
    let supported = |name: &str| {
        let names = model.feed_forward.activation().names();
        // The exact function and its approximation by tanh differ by 0.0005 at most.
        let is_exact = FeedForwardKind::Plain(Activation::Gelu) == model.feed_forward
            && !model.is_causal
            && name == "gelu";
        is_exact || names.contains(&name)
    };
    let activation = config.str(key)?;
    config.require(key, activation.is_none_or(supported))?;
    let list = |key: &str| {
        config
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    for (kind, layer) in list("layer_types").zip(&model.layers) {
        let is_local = layer.window.is_some() || layer.rope == LayerRope::Local;
        let is_recurrent = ["conv", "linear_attention", "mamba"]
            .iter()
            .any(|it| kind == it);
        let is_same = is_recurrent == (layer.mixing == Mixing::Recurrence)
            && (kind == "sliding_attention" || kind == "chunked_attention") == is_local;
        config.require("layer_types", is_same)?;
    }
    for (has_rope, layer) in list("no_rope_layers").zip(&model.layers) {
        let is_without = layer.rope == LayerRope::None;
        config.require("no_rope_layers", (has_rope == 0) == is_without)?;
    }
    Ok(())
}

/// `max_new_tokens` of `generation_config.json`. Converters do not copy it.
pub const MAX_NEW_TOKENS_KEY: &str = "inpage.max_new_tokens";

/// Adds the recommendations of `generation_config.json`, by the keys that converters copy them to.
pub fn add_recommendations(metadata: &mut Metadata, bytes: &[u8]) -> Result<()> {
    let values: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::InvalidModelFile(format!("generation_config.json: {error}")))?;
    for (ours, theirs) in [
        ("temp", "temperature"),
        ("top_p", "top_p"),
        ("min_p", "min_p"),
        ("penalty_repeat", "repetition_penalty"),
    ] {
        if let Some(value) = values.get(theirs).and_then(Value::as_f64) {
            metadata.insert(format!("general.sampling.{ours}"), value as f32);
        }
    }
    for (ours, theirs) in [
        ("general.sampling.top_k", "top_k"),
        (MAX_NEW_TOKENS_KEY, "max_new_tokens"),
    ] {
        if let Some(value) = values.get(theirs).and_then(Value::as_i64) {
            metadata.insert(ours, MetadataValue::I64(value));
        }
    }
    Ok(())
}
