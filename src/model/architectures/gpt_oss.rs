//! gpt-oss (OpenAI 2025, <https://arxiv.org/abs/2508.10925>): a mixture of experts with biases everywhere, an
//! activation with limits, a score without a value in each softmax (attention sinks), and a sliding window in every other
//! layer.

use super::{
    architecture::{Architecture, Form, Parameter},
    shared::{EXPERT_SIZES, set_experts},
};
use crate::{
    Result,
    model::config::{Activation, ConfigJson, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gpt-oss",
    model_types: &["gpt_oss"],
    configure,
    read_json,
    json_sizes: EXPERT_SIZES,
    tensors: &[&[
        (
            "model.layers.*.post_attention_layernorm",
            "blk.*.post_attention_norm",
        ),
        ("model.layers.*.mlp.router", "blk.*.ffn_gate_inp"),
    ]],
    parameters: |_| PARAMETERS,
    ..Architecture::LLAMA_LIKE
};

/// Rows of gate and up take turns.
const PARAMETERS: &[Parameter] = &[
    Parameter {
        from: "model.layers.*.self_attn.sinks",
        to: &[("blk.*.attn_sinks.weight", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.mlp.experts.gate_up_proj_blocks",
        to: &[
            ("blk.*.ffn_gate_exps.weight", Form::Mxfp4(Some(0))),
            ("blk.*.ffn_up_exps.weight", Form::Mxfp4(Some(1))),
        ],
    },
    Parameter {
        from: "model.layers.*.mlp.experts.gate_up_proj_bias",
        to: &[
            ("blk.*.ffn_gate_exps.bias", Form::Alternate(0)),
            ("blk.*.ffn_up_exps.bias", Form::Alternate(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.mlp.experts.down_proj_blocks",
        to: &[("blk.*.ffn_down_exps.weight", Form::Mxfp4(None))],
    },
    Parameter {
        from: "model.layers.*.mlp.experts.down_proj_bias",
        to: &[("blk.*.ffn_down_exps.bias", Form::SAME)],
    },
];

fn read_json(json: &mut ConfigJson) -> Result<()> {
    for (key, value) in [("swiglu_limit", 7.0), ("swiglu_alpha", 1.702)] {
        json.require(key, json.number(key)?.is_none_or(|it| it == value))?;
    }
    json.rename("experts_per_token", "num_experts_per_tok");
    Ok(())
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.ffn_norm = "post_attention_norm";
    config.has_sinks = true;
    config.has_gate_biases = true;
    config.feed_forward = FeedForwardKind::Gated(Activation::ClampedSilu);
    set_experts(keys, config, true)?;
    config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    let window = keys.size_or_zero("attention.sliding_window")?;
    config.set_windows(window, |layer| layer.is_multiple_of(2));
    Ok(())
}
