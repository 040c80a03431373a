//! The architectures that this build runs. Each is a file, which declares what differs from a Llama, and
//! a `mod` line and a list entry here; `docs/adding-an-architecture.md` describes the steps. How layers
//! compute is in `layers`. Plan, loader and layers follow the resulting `ModelConfig`.

mod architecture;
mod shared;

mod bert;
mod bitnet;
mod deepseek2;
mod ernie4_5;
mod eurobert;
mod exaone4;
mod falcon_h1;
mod gemma;
mod gemma2;
mod gemma3;
mod gemma4;
mod gemma4_folder;
mod gemma_embedding;
mod glm4;
mod gpt2;
mod gpt_oss;
mod granite;
mod granitehybrid;
mod hunyuan_dense;
mod lfm2;
mod lfm2moe;
mod llama;
mod llama4;
mod minicpm;
mod mistral3;
mod nanbeige;
mod nomic_bert;
mod olmo2;
mod olmoe;
mod phi3;
mod qwen2;
mod qwen2vl;
mod qwen3;
mod qwen35;
mod qwen35moe;
mod qwen3moe;
mod qwen3next;
mod qwen3vl;
mod roberta;
mod seed_oss;
mod smollm3;
mod starcoder2;

pub use architecture::{Architecture, Form, Names, Parameter};
pub use qwen3vl::DEEPSTACK_LAYERS;

use super::config::{
    ConfigJson, Keys, ModelConfig, RopePairs, embedding::Pooling, keys::missing, llama_like,
    rope::ROPE_HALVES,
};
use crate::{
    Error, Result,
    weights::{Gguf, Metadata, TensorInfo},
};

/// The matrix of the input of a head that predicts a further token, after `blk.N.`.
pub const MTP_INPUT: &str = "nextn.eh_proj.weight";

/// All supported architectures.
const ARCHITECTURES: &[&Architecture] = &[
    &llama::ARCHITECTURE,
    &llama4::ARCHITECTURE,
    &qwen2::ARCHITECTURE,
    &qwen3::ARCHITECTURE,
    &qwen3moe::ARCHITECTURE,
    &qwen2vl::ARCHITECTURE,
    &qwen3vl::ARCHITECTURE,
    &gemma::ARCHITECTURE,
    &gemma2::ARCHITECTURE,
    &gemma3::ARCHITECTURE,
    &gemma4::ARCHITECTURE,
    &phi3::ARCHITECTURE,
    &olmo2::ARCHITECTURE,
    &olmoe::ARCHITECTURE,
    &smollm3::ARCHITECTURE,
    &gpt2::ARCHITECTURE,
    &starcoder2::ARCHITECTURE,
    &granite::ARCHITECTURE,
    &ernie4_5::ARCHITECTURE,
    &glm4::ARCHITECTURE,
    &exaone4::ARCHITECTURE,
    &hunyuan_dense::ARCHITECTURE,
    &seed_oss::ARCHITECTURE,
    &gpt_oss::ARCHITECTURE,
    &minicpm::ARCHITECTURE,
    &nanbeige::ARCHITECTURE,
    &mistral3::ARCHITECTURE,
    &granitehybrid::ARCHITECTURE,
    &falcon_h1::ARCHITECTURE,
    &deepseek2::ARCHITECTURE,
    &bitnet::ARCHITECTURE,
    &bitnet::ARCHITECTURE_2025,
    &lfm2::ARCHITECTURE,
    &lfm2moe::ARCHITECTURE,
    &qwen35::ARCHITECTURE,
    &qwen35moe::ARCHITECTURE,
    &qwen3next::ARCHITECTURE,
    &bert::ARCHITECTURE,
    &roberta::ARCHITECTURE,
    &nomic_bert::ARCHITECTURE,
    &eurobert::ARCHITECTURE,
    &gemma_embedding::ARCHITECTURE,
];

/// The `general.architecture` of each supported architecture.
pub fn names() -> impl Iterator<Item = &'static str> {
    // Folders of RoBERTa become files of BERT.
    let is_first = |(i, it): &(usize, &&Architecture)| {
        let mut before = ARCHITECTURES[..*i].iter();
        !before.any(|other| other.name == it.name)
    };
    let first = ARCHITECTURES.iter().enumerate().filter(is_first);
    first.map(|(_, architecture)| architecture.name)
}

/// The architecture of this name.
///
/// # Errors
/// [`Error::UnsupportedModel`] that names it and the supported ones.
pub fn find(name: &str) -> Result<&'static Architecture> {
    let found = ARCHITECTURES.iter().find(|it| it.name == name);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        Error::UnsupportedModel(format!(
            "architecture {name:?}; this build runs {}",
            known.join(", ")
        ))
    })
}

/// The architecture of Hugging Face folders with this `config.json`.
///
/// # Errors
/// [`Error::UnsupportedModel`] that names the `model_type` and the supported ones, or an attention that no
/// architecture of this type has; [`Error::InvalidModelFile`] for members of the wrong type.
pub fn find_by_config(config: &ConfigJson) -> Result<&'static Architecture> {
    let model_type = config.str("model_type")?.unwrap_or_default();
    let find = |types: fn(&Architecture) -> &'static [&'static str]| {
        let mut architectures = ARCHITECTURES.iter().copied();
        architectures.find(|it| types(it).contains(&model_type))
    };
    let found = find(|it| it.model_types);
    let key = "use_bidirectional_attention";
    // Rows of images see each other then; tokens do not.
    let is_of_images = config.get(key).is_some_and(|it| *it == "vision");
    if found.is_some() && !is_of_images && config.bool(key)? == Some(true) {
        return find(|it| it.bidirectional_model_types).ok_or_else(|| config.unsupported(key));
    }
    found.ok_or_else(|| {
        let types = ARCHITECTURES.iter().flat_map(|it| it.model_types);
        let known: Vec<&str> = types.copied().collect();
        Error::UnsupportedModel(format!(
            "config.json: model_type {model_type:?}; of folders this build runs {}",
            known.join(", ")
        ))
    })
}

/// Reads and checks the hyperparameters of a model.
///
/// # Errors
/// [`Error::UnsupportedModel`] for other architectures and for values that this build does not support,
/// [`Error::InvalidModelFile`] for missing, mistyped or contradictory values. The text names the key.
pub fn read_config(gguf: &Gguf) -> Result<ModelConfig> {
    let embeddings = gguf.tensor("token_embd.weight");
    let vocab = embeddings.and_then(|tensor| tensor.shape.get(1).copied());
    let mut config = configure(&gguf.metadata, vocab)?;
    if config.ignored_blocks > 0 {
        let name = format!("blk.{}.{MTP_INPUT}", config.layers.len());
        // Half of its columns are for the embedding, and halves of blocks cannot be read.
        let is_usable = |it: &TensorInfo| {
            let dim = config.dim as u64;
            it.shape.first() == Some(&(2 * dim)) && config.dim.is_multiple_of(it.ty.block_len())
        };
        config.has_mtp_head = gguf.tensor(&name).is_some_and(is_usable);
        config.ignored_blocks -= usize::from(config.has_mtp_head);
    }
    Ok(config)
}

/// Same as [`read_config`], for a model whose embedding table has `vocab` rows.
pub fn configure(metadata: &Metadata, vocab: Option<u64>) -> Result<ModelConfig> {
    let name = metadata.str("general.architecture")?;
    let architecture = find(name.ok_or_else(|| missing("general.architecture"))?)?;
    let keys = Keys::new(metadata, architecture.name);
    let vocab = vocab.ok_or_else(|| missing("token_embd.weight"))?;
    let mut config = llama_like::read(&keys, vocab as usize)?;
    let pairs = match keys.bool(ROPE_HALVES)? {
        None => architecture.gguf_pairs,
        Some(true) => RopePairs::Halves,
        Some(false) => RopePairs::Adjacent,
    };
    if let Some(rope) = config.rope_mut() {
        rope.pairs = pairs;
    }
    (architecture.configure)(&keys, &mut config)?;
    let is_causal = config.is_causal;
    if let Some(embedding) = config.embedding.as_mut().filter(|it| it.classes.is_some()) {
        // The only tokens that have seen the whole text in each layer, or that training has chosen.
        embedding.pooling = match is_causal {
            true => Pooling::Last,
            false => Pooling::First,
        };
    }
    llama_like::check(&config)?;
    Ok(config)
}

#[cfg(test)]
mod tests;
