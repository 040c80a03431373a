//! OLMoE (Muennighoff et al. 2024, <https://arxiv.org/abs/2409.02060>): a mixture of experts weighted by a
//! softmax over all of them; one norm over all query heads and one over all key heads.

use super::{
    architecture::Architecture,
    shared::{EXPERT_SIZES, EXPERT_TENSORS, QK_NORM_TENSORS, set_experts},
};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "olmoe",
    model_types: &["olmoe"],
    configure,
    read_json,
    json_sizes: EXPERT_SIZES,
    tensors: &[QK_NORM_TENSORS, EXPERT_TENSORS],
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Rows;
    set_experts(keys, config, false)?;
    config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let key = "norm_topk_prob";
    json.require(key, json.bool(key)? != Some(true))?;
    let key = "clip_qkv";
    json.require(key, json.get(key).is_none())
}
