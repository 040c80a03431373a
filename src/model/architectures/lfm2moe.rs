//! LFM2 with a mixture of experts, which sigmoids select, in all layers but the first ones.

use super::{
    architecture::{AddKey, Architecture, Form, Parameter},
    lfm2,
    shared::set_experts,
};
use crate::{
    Result,
    model::config::{ConfigJson, DenseLayers, DensePlaces, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "lfm2moe",
    model_types: &["lfm2_moe"],
    configure,
    read_json,
    add_keys,
    json_sizes: &[
        lfm2::CONVOLUTION,
        ("num_experts", "expert_count"),
        ("num_experts_per_tok", "expert_used_count"),
        ("moe_intermediate_size", "expert_feed_forward_length"),
        ("num_dense_layers", "leading_dense_block_count"),
    ],
    tensors: &[
        &[
            ("model.layers.*.feed_forward.gate", "blk.*.ffn_gate_inp"),
            (
                "model.layers.*.feed_forward.experts.*.w1",
                "blk.*.ffn_gate_exps",
            ),
            (
                "model.layers.*.feed_forward.experts.*.w3",
                "blk.*.ffn_up_exps",
            ),
            (
                "model.layers.*.feed_forward.experts.*.w2",
                "blk.*.ffn_down_exps",
            ),
        ],
        lfm2::TENSORS,
    ],
    parameters: |_| PARAMETERS,
    ..Architecture::LLAMA_LIKE
};

const PARAMETERS: &[Parameter] = &[Parameter {
    from: "model.layers.*.feed_forward.expert_bias",
    to: &[("blk.*.exp_probs_b.bias", Form::SAME)],
}];

fn read_json(json: &mut ConfigJson) -> Result<()> {
    lfm2::read_members(json)?;
    let key = "norm_topk_prob";
    json.require(key, json.bool(key)? != Some(false))?;
    let key = "routed_scaling_factor";
    json.require(key, json.number(key)?.is_none_or(|it| it == 1.0))
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    add("expert_gating_func", SIGMOID.into());
    lfm2::add_keys(json, add)
}

/// `expert_gating_func` of sigmoids.
const SIGMOID: u32 = 2;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    lfm2::configure(keys, config)?;
    set_experts(keys, config, true)?;
    let gating = keys.metadata().u32(&keys.name("expert_gating_func"))?;
    if gating != Some(SIGMOID) {
        return Err(keys.unsupported(&format!("expert_gating_func {gating:?}")));
    }
    if let FeedForwardKind::Experts(experts) = &mut config.feed_forward {
        experts.is_sigmoid = true;
    }
    let dense = keys.size_or_zero("leading_dense_block_count")?;
    config.dense_layers = dense.map(|layers| DenseLayers {
        places: DensePlaces::First(layers),
        ffn_dim: config.ffn_dim,
    });
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}
