//! `config.json` as the metadata that a GGUF file of the model has. Refuses what the architectures
//! here do differently.

use serde_json::Value;

use super::{config::Config, rope};
use crate::{
    Error, Result,
    weights::{Metadata, MetadataValue},
};

/// Our architectures by `model_type`.
const ARCHITECTURES: [(&str, &str); 16] = [
    ("llama", "llama"),
    ("mistral", "llama"),
    ("mixtral", "llama"),
    ("qwen2", "qwen2"),
    ("qwen3", "qwen3"),
    ("qwen3_moe", "qwen3moe"),
    ("gemma", "gemma"),
    ("gemma2", "gemma2"),
    ("gemma3_text", "gemma3"),
    ("phi3", "phi3"),
    ("olmo2", "olmo2"),
    ("olmoe", "olmoe"),
    ("smollm3", "smollm3"),
    ("starcoder2", "starcoder2"),
    ("granite", "granite"),
    ("gpt2", "gpt2"),
];

/// GPT-2's keys, and what all others call them.
const GPT2_KEYS: [(&str, &str); 7] = [
    ("n_layer", "num_hidden_layers"),
    ("n_positions", "max_position_embeddings"),
    ("n_embd", "hidden_size"),
    ("n_inner", "intermediate_size"),
    ("n_head", "num_attention_heads"),
    ("layer_norm_epsilon", "norm_epsilon"),
    ("activation_function", "hidden_act"),
];

/// Keys that are whole numbers: ours without the architecture, theirs.
const SIZES: [(&str, &str); 10] = [
    ("block_count", "num_hidden_layers"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("expert_count", "num_local_experts"),
    ("expert_count", "num_experts"),
    ("expert_used_count", "num_experts_per_tok"),
    ("expert_feed_forward_length", "moe_intermediate_size"),
];

/// Keys that are any numbers.
const NUMBERS: [(&str, &str); 8] = [
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.layer_norm_epsilon", "norm_epsilon"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
    ("attention.scale", "attention_multiplier"),
    ("embedding_scale", "embedding_multiplier"),
    ("residual_scale", "residual_multiplier"),
    ("logit_scale", "logits_scaling"),
];

/// The configuration with the names that most architectures have for its keys.
pub fn by_common_names(mut config: Config) -> Result<Config> {
    if config.str("model_type")? == Some("gpt2") {
        for (theirs, common) in GPT2_KEYS {
            if let Some(value) = config.get(theirs).cloned() {
                config.add(common, value);
            }
        }
        let width = u64::from(config.needed("hidden_size")?);
        config.add("intermediate_size", (4 * width).into());
    }
    Ok(config)
}

/// The metadata.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming what this build cannot run, [`Error::InvalidModelFile`] for
/// members of the wrong type.
pub fn of(config: &Config) -> Result<Metadata> {
    let model_type = config.str("model_type")?.unwrap_or_default();
    let found = ARCHITECTURES.iter().find(|(known, _)| *known == model_type);
    let Some((_, architecture)) = found else {
        let known = ARCHITECTURES.map(|(known, _)| known);
        return Err(Error::UnsupportedModel(format!(
            "config.json: model_type {model_type:?}; of folders this build runs {}",
            known.join(", ")
        )));
    };
    check(config, model_type)?;
    let mut metadata = Metadata::new();
    metadata.insert("general.architecture", *architecture);
    let name = |key: &str| format!("{architecture}.{key}");
    for (ours, theirs) in SIZES {
        if let Some(value) = config.size(theirs)? {
            metadata.insert(name(ours), value);
        }
    }
    for (ours, theirs) in NUMBERS {
        if let Some(value) = config.number(theirs)? {
            metadata.insert(name(ours), value as f32);
        }
    }
    let head_dim = config.head_dim()?;
    metadata.insert(name("attention.key_length"), head_dim);
    metadata.insert(name("attention.value_length"), head_dim);
    if let Some(scalar) = config.number("query_pre_attn_scalar")? {
        metadata.insert(name("attention.scale"), scalar.powf(-0.5) as f32);
    }
    let uses_window = config.bool("use_sliding_window")?.unwrap_or(true);
    if let Some(window) = config.size("sliding_window")?.filter(|_| uses_window) {
        metadata.insert(name("attention.sliding_window"), window);
    }
    rope::add(&mut metadata, architecture, config)?;
    Ok(metadata)
}

/// Refuses what the architecture of this name does otherwise than the folder wants.
fn check(config: &Config, model_type: &str) -> Result<()> {
    let refused = |key: &str| {
        let value = config.get(key).map(ToString::to_string).unwrap_or_default();
        let value: String = value.chars().take(80).collect();
        Err(Error::UnsupportedModel(format!(
            "{model_type} with {key} {value}"
        )))
    };
    let activations: &[&str] = match model_type {
        // The first Gemma's files say "gelu" and mean this one.
        "gemma" => &["gelu_pytorch_tanh", "gelu"],
        "gemma2" | "gemma3_text" | "starcoder2" => &["gelu_pytorch_tanh"],
        "gpt2" => &["gelu_new", "gelu_pytorch_tanh"],
        _ => &["silu"],
    };
    for key in ["hidden_act", "hidden_activation"] {
        let activation = config.str(key)?;
        // Where both are there, the second counts.
        let counts = key == "hidden_activation" || config.get("hidden_activation").is_none();
        if activation.is_some_and(|it| counts && !activations.contains(&it)) {
            return refused(key);
        }
    }
    let is_window = |layer: usize| match model_type {
        "gemma2" => layer.is_multiple_of(2),
        "gemma3_text" => layer % 6 != 5,
        "qwen2" | "qwen3" | "qwen3_moe" => false,
        // One window for all layers, or none.
        _ => config.get("sliding_window").is_some(),
    };
    let layer_types = config.get("layer_types").and_then(Value::as_array);
    for (layer, kind) in layer_types.into_iter().flatten().enumerate() {
        if (kind == "sliding_attention") != is_window(layer) {
            return refused("layer_types");
        }
    }
    if model_type.starts_with("qwen") && config.bool("use_sliding_window")? == Some(true) {
        return refused("use_sliding_window");
    }
    if config
        .size("sliding_window_pattern")?
        .is_some_and(|it| it != 6)
        && model_type == "gemma3_text"
    {
        return refused("sliding_window_pattern");
    }
    let rotates = config.get("no_rope_layers").and_then(Value::as_array);
    for (layer, rotates) in rotates.into_iter().flatten().enumerate() {
        if model_type == "smollm3" && (rotates == 0) != (layer % 4 == 3) {
            return refused("no_rope_layers");
        }
    }
    // Whether the weights of a token's experts sum up to one.
    let normalizes = config.bool("norm_topk_prob")?;
    if (model_type == "qwen3_moe" && normalizes != Some(true))
        || (model_type == "olmoe" && normalizes == Some(true))
    {
        return refused("norm_topk_prob");
    }
    // Null says that there is none, absence that it is the usual one.
    for key in [
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "sliding_window",
    ] {
        if model_type == "gemma2" && config.is_null(key) {
            return Err(Error::UnsupportedModel(format!("gemma2 without {key}")));
        }
    }
    for (key, usual) in [
        ("scale_attn_weights", true),
        ("scale_attn_by_inverse_layer_idx", false),
    ] {
        if config.bool(key)?.is_some_and(|it| it != usual) {
            return refused(key);
        }
    }
    if config.get("clip_qkv").is_some() {
        return refused("clip_qkv");
    }
    Ok(())
}

/// Adds what `generation_config.json` recommends, by the keys that converters copy it to.
pub fn add_sampling(metadata: &mut Metadata, bytes: &[u8]) -> Result<()> {
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
    if let Some(top_k) = values.get("top_k").and_then(Value::as_i64) {
        metadata.insert("general.sampling.top_k", MetadataValue::I64(top_k));
    }
    Ok(())
}
