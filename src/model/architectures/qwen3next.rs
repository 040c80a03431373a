//! Qwen3-Next: the layers of Qwen3.5 with experts, whose recurrent inputs are joined by key heads.

use super::{
    architecture::{Architecture, Names},
    qwen35, qwen35moe,
    shared::{EXPERT_TENSORS, QK_NORM_TENSORS},
};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, Recurrence},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3next",
    model_types: &["qwen3_next"],
    configure,
    read_json,
    tensors: &[
        TENSORS,
        qwen35moe::SHARED,
        EXPERT_TENSORS,
        qwen35::TENSORS,
        QK_NORM_TENSORS,
    ],
    ..qwen35moe::ARCHITECTURE
};

const TENSORS: Names = &[
    ("model.layers.*.linear_attn.in_proj_qkvz", "blk.*.ssm_in"),
    ("model.layers.*.linear_attn.in_proj_ba", "blk.*.ssm_ba"),
];

fn read_json(json: &mut ConfigJson) -> Result<()> {
    qwen35::read_json(json)?;
    let key = "norm_topk_prob";
    json.require(key, json.bool(key)? != Some(false))?;
    let key = "decoder_sparse_step";
    json.require(key, json.size(key)?.is_none_or(|step| step == 1))?;
    let key = "mlp_only_layers";
    json.require(key, json.numbers(key)?.is_none_or(|it| it.is_empty()))
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen35moe::configure(keys, config)?;
    if let Some(Recurrence::Linear(recurrence)) = &mut config.recurrence {
        recurrence.is_tiled = false;
        recurrence.joins_inputs = true;
    }
    Ok(())
}
