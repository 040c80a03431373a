//! Granite 4 hybrids: Mamba 2 in most layers, attention without positions in the others, and the factors of Granite.

use super::{
    architecture::{AddKey, Architecture, Form, Names, Parameter},
    granite,
    shared::{kv_heads_of_layers, recurrent_without_kv_heads, set_experts_with_shared},
};
use crate::{
    Result,
    model::config::{
        ConfigJson, Keys, LayerRope, LinearRecurrence, ModelConfig, Recurrence, RopePairs, Rule,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "granitehybrid",
    model_types: &["granitemoehybrid"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    read_json,
    add_keys,
    json_sizes: &[
        ("mamba_d_conv", "ssm.conv_kernel"),
        ("mamba_d_state", "ssm.state_size"),
        ("mamba_n_groups", "ssm.group_count"),
        ("mamba_n_heads", "ssm.time_step_rank"),
    ],
    json_numbers: granite::ARCHITECTURE.json_numbers,
    tensors: &[TENSORS],
    parameters,
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("model.layers.*.mamba.in_proj", "blk.*.ssm_in"),
    ("model.layers.*.mamba.conv1d", "blk.*.ssm_conv1d"),
    ("model.layers.*.mamba.norm", "blk.*.ssm_norm"),
    ("model.layers.*.mamba.out_proj", "blk.*.ssm_out"),
    (
        "model.layers.*.block_sparse_moe.router.layer",
        "blk.*.ffn_gate_inp",
    ),
    (
        "model.layers.*.block_sparse_moe.output_linear",
        "blk.*.ffn_down_exps",
    ),
];

const RATES: Parameter = Parameter {
    from: "model.layers.*.mamba.A_log",
    to: &[("blk.*.ssm_a", Form::NegatedExp)],
};
const SKIP: Parameter = Parameter {
    from: "model.layers.*.mamba.D",
    to: &[("blk.*.ssm_d", Form::SAME)],
};
const STEPS: Parameter = Parameter {
    from: "model.layers.*.mamba.dt_bias",
    to: &[("blk.*.ssm_dt.bias", Form::SAME)],
};

/// The feed-forward that all tokens use is the only one of models without experts.
const DENSE: &[Parameter] = &[
    RATES,
    SKIP,
    STEPS,
    Parameter {
        from: "model.layers.*.shared_mlp.input_linear.weight",
        to: &[
            ("blk.*.ffn_gate.weight", Form::HalfRows(0)),
            ("blk.*.ffn_up.weight", Form::HalfRows(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.shared_mlp.output_linear.weight",
        to: &[("blk.*.ffn_down.weight", Form::SAME)],
    },
];

const WITH_EXPERTS: &[Parameter] = &[
    RATES,
    SKIP,
    STEPS,
    Parameter {
        from: "model.layers.*.block_sparse_moe.input_linear.weight",
        to: &[
            ("blk.*.ffn_gate_exps.weight", Form::HalfRows(0)),
            ("blk.*.ffn_up_exps.weight", Form::HalfRows(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.shared_mlp.input_linear.weight",
        to: &[
            ("blk.*.ffn_gate_shexp.weight", Form::HalfRows(0)),
            ("blk.*.ffn_up_shexp.weight", Form::HalfRows(1)),
        ],
    },
    Parameter {
        from: "model.layers.*.shared_mlp.output_linear.weight",
        to: &[("blk.*.ffn_down_shexp.weight", Form::SAME)],
    },
];

fn parameters(json: &ConfigJson) -> &'static [Parameter] {
    match experts(json) {
        Ok(Some(_)) => WITH_EXPERTS,
        _ => DENSE,
    }
}

fn experts(json: &ConfigJson) -> Result<Option<u32>> {
    Ok(json.size("num_local_experts")?.filter(|count| *count > 0))
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    for key in ["mamba_proj_bias", "attention_bias"] {
        json.require(key, json.bool(key)? != Some(true))?;
    }
    // Earlier folders call the kinds so in another member.
    json.rename("layers_block_type", "layer_types");
    Ok(())
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    kv_heads_of_layers(json, add)?;
    let inner = json
        .needed("mamba_expand")?
        .saturating_mul(json.needed("hidden_size")?);
    add("ssm.inner_size", inner.into());
    // The key stands for whether positions enter at all.
    let has_rope = json.str("position_embedding_type")? == Some("rope");
    add("rope.scaling.finetuned", has_rope.into());
    let shared = json.needed("shared_intermediate_size")?;
    match experts(json)? {
        None => add("feed_forward_length", shared.into()),
        Some(count) => {
            add("expert_count", count.into());
            add(
                "expert_used_count",
                json.needed("num_experts_per_tok")?.into(),
            );
            add("expert_shared_feed_forward_length", shared.into());
        }
    }
    Ok(())
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    granite::set_factors(keys, config)?;
    if keys.size_or_zero("expert_count")?.is_some() {
        set_experts_with_shared(keys, config, true, false)?;
        config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    }
    let recurrence = LinearRecurrence::read(keys, Rule::Mamba2)?;
    config.recurrence = Some(Recurrence::Linear(recurrence));
    // The key stands for whether positions enter at all.
    if keys.bool("rope.scaling.finetuned")? == Some(false) {
        for layer in &mut config.layers {
            layer.rope = LayerRope::None;
        }
    }
    recurrent_without_kv_heads(keys, config)
}
