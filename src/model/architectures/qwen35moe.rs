//! Qwen3.5 with a mixture of experts, and a feed-forward beside it that a gate weighs.

use super::{
    architecture::{Architecture, Names, Parameter},
    qwen35,
    shared::{
        EXPERT_SIZES, EXPERT_TENSORS, JOINED_EXPERTS, QK_NORM_TENSORS, set_experts_with_shared,
    },
};
use crate::{
    Result,
    model::config::{Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen35moe",
    model_types: &["qwen3_5_moe_text"],
    configure,
    read_json: qwen35::read_json,
    add_keys: qwen35::add_keys,
    json_sizes: &SIZES,
    tensors: &[SHARED, EXPERT_TENSORS, qwen35::TENSORS, QK_NORM_TENSORS],
    parameters: |_| &PARAMETERS,
    other_parts: qwen35::OTHER_PARTS,
    norm_offset: 1.0,
    ..Architecture::LLAMA_LIKE
};

const SIZES: [(&str, &str); 9] = [
    qwen35::SIZES[0],
    qwen35::SIZES[1],
    qwen35::SIZES[2],
    qwen35::SIZES[3],
    EXPERT_SIZES[0],
    EXPERT_SIZES[1],
    EXPERT_SIZES[2],
    EXPERT_SIZES[3],
    (
        "shared_expert_intermediate_size",
        "expert_shared_feed_forward_length",
    ),
];

pub(super) const SHARED: Names = &[
    (
        "model.layers.*.mlp.shared_expert.gate_proj",
        "blk.*.ffn_gate_shexp",
    ),
    (
        "model.layers.*.mlp.shared_expert.up_proj",
        "blk.*.ffn_up_shexp",
    ),
    (
        "model.layers.*.mlp.shared_expert.down_proj",
        "blk.*.ffn_down_shexp",
    ),
    (
        "model.layers.*.mlp.shared_expert_gate",
        "blk.*.ffn_gate_inp_shexp",
    ),
];

const PARAMETERS: [Parameter; 5] = {
    let [norm, rates, steps] = qwen35::PARAMETERS;
    let [gate_up, down] = JOINED_EXPERTS;
    [norm, rates, steps, gate_up, down]
};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen35::configure(keys, config)?;
    set_experts_with_shared(keys, config, true, true)?;
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}
