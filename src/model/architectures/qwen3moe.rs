//! Qwen3 with a mixture of experts. The weights of the experts of a token sum to one.

use super::{
    architecture::Architecture,
    qwen2, qwen3,
    shared::{EXPERT_SIZES, EXPERT_TENSORS, QK_NORM_TENSORS, set_experts},
};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3moe",
    model_types: &["qwen3_moe"],
    configure,
    read_json,
    json_sizes: EXPERT_SIZES,
    tensors: &[QK_NORM_TENSORS, EXPERT_TENSORS],
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen3::configure(keys, config)?;
    set_experts(keys, config, true)?;
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    qwen2::read_json(json)?;
    // Absent means false.
    let key = "norm_topk_prob";
    json.require(key, json.bool(key)? == Some(true))
}
