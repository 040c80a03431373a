//! Seed-OSS (ByteDance 2025): a Llama with biases of queries, keys and values, whose GGUF files have another name for
//! the norm of the feed-forward.

use super::architecture::Architecture;
use crate::{
    Result,
    model::config::{Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "seed_oss",
    model_types: &["seed_oss"],
    configure,
    tensors: &[&[(
        "model.layers.*.post_attention_layernorm",
        "blk.*.post_attention_norm",
    )]],
    ..Architecture::LLAMA_LIKE
};

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.ffn_norm = "post_attention_norm";
    Ok(())
}
