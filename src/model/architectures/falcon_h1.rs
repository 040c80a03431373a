//! Falcon-H1 (Zuo et al. 2025, <https://arxiv.org/abs/2507.22448>): Mamba 2 beside attention in every layer. Checkpoints have
//! factors of many results; converters multiply the matrices of layers by them.

use super::architecture::{AddKey, Architecture, Form, Names, Parameter};
use crate::{
    Result,
    model::config::{
        ConfigJson, Keys, LinearRecurrence, Mixing, ModelConfig, Recurrence, Rule, json::missing,
    },
    weights::converted::RowFactors,
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "falcon-h1",
    model_types: &["falcon_h1"],
    configure,
    read_json,
    add_keys,
    json_sizes: &[
        ("mamba_d_conv", "ssm.conv_kernel"),
        ("mamba_d_ssm", "ssm.inner_size"),
        ("mamba_d_state", "ssm.state_size"),
        ("mamba_n_groups", "ssm.group_count"),
        ("mamba_n_heads", "ssm.time_step_rank"),
    ],
    // Keys of folders alone: converters multiply the embeddings and the output by them.
    json_numbers: &[
        ("embedding_multiplier", "embedding_scale"),
        ("lm_head_multiplier", "logit_scale"),
    ],
    tensors: &[TENSORS],
    parameters: |_| PARAMETERS,
    row_factors: Some(row_factors),
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("model.final_layernorm", "output_norm"),
    ("model.layers.*.pre_ff_layernorm", "blk.*.ffn_norm"),
    ("model.layers.*.feed_forward.gate_proj", "blk.*.ffn_gate"),
    ("model.layers.*.feed_forward.up_proj", "blk.*.ffn_up"),
    ("model.layers.*.feed_forward.down_proj", "blk.*.ffn_down"),
    ("model.layers.*.mamba.in_proj", "blk.*.ssm_in"),
    ("model.layers.*.mamba.conv1d", "blk.*.ssm_conv1d"),
    ("model.layers.*.mamba.norm", "blk.*.ssm_norm"),
    ("model.layers.*.mamba.out_proj", "blk.*.ssm_out"),
];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        from: "model.layers.*.mamba.A_log",
        to: &[("blk.*.ssm_a", Form::NegatedExp)],
    },
    Parameter {
        from: "model.layers.*.mamba.D",
        to: &[("blk.*.ssm_d", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.mamba.dt_bias",
        to: &[("blk.*.ssm_dt.bias", Form::SAME)],
    },
];

fn read_json(json: &mut ConfigJson) -> Result<()> {
    for key in [
        "attention_bias",
        "mamba_proj_bias",
        "mlp_bias",
        "projectors_bias",
    ] {
        json.require(key, json.bool(key)? != Some(true))?;
    }
    let key = "mamba_conv_bias";
    json.require(key, json.bool(key)? != Some(false))?;
    // Gates are applied before the norm; checkpoints without a norm have the member, too.
    if json.bool("mamba_rms_norm")? == Some(true) {
        let key = "mamba_norm_before_gate";
        json.require(key, json.bool(key)? == Some(false))?;
    }
    Ok(())
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    if json.size("mamba_d_ssm")?.is_none() {
        let expand = json.needed("mamba_expand")?;
        let inner = expand.saturating_mul(json.needed("hidden_size")?);
        add("ssm.inner_size", inner.into());
    }
    Ok(())
}

fn row_factors(json: &ConfigJson, part: &str) -> Result<Option<RowFactors>> {
    let factor = |key: &str| Ok::<_, crate::Error>(json.number(key)?.unwrap_or(1.0));
    let of_feed_forward = |at: usize| several(json, "mlp_multipliers", at);
    let attention_input = || factor("attention_in_multiplier");
    let all = match part {
        "attn_q" | "attn_v" => attention_input()?,
        "attn_k" => attention_input()? * factor("key_multiplier")?,
        "attn_output" => factor("attention_out_multiplier")?,
        "ffn_gate" => of_feed_forward(0)?,
        "ffn_down" => of_feed_forward(1)?,
        "ssm_out" => factor("ssm_out_multiplier")?,
        "ssm_in" => return input_factors(json, factor("ssm_in_multiplier")?).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(RowFactors(vec![(u64::MAX, all as f32)])))
}

/// The factors of gates, values, keys, queries and rates.
fn input_factors(json: &ConfigJson, all: f64) -> Result<RowFactors> {
    let inner = match json.size("mamba_d_ssm")? {
        Some(inner) => u64::from(inner),
        None => u64::from(json.needed("mamba_expand")?) * u64::from(json.needed("hidden_size")?),
    };
    let group = u64::from(json.needed("mamba_d_state")?);
    let keys = u64::from(json.needed("mamba_n_groups")?) * group;
    let rates = u64::from(json.needed("mamba_n_heads")?);
    let runs = [inner, inner, keys, keys, rates].into_iter().enumerate();
    let runs: Result<_> = runs
        .map(|(i, rows)| {
            let factor = all * several(json, "ssm_multipliers", i)?;
            Ok((rows, factor as f32))
        })
        .collect();
    runs.map(RowFactors)
}

/// An entry of a list of factors; 1 without the list.
fn several(json: &ConfigJson, key: &str, at: usize) -> Result<f64> {
    match json.numbers(key)? {
        None => Ok(1.0),
        Some(numbers) => {
            let number = numbers.get(at).copied();
            number.map(f64::from).ok_or_else(|| missing(key))
        }
    }
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.embedding_scale = keys.positive_or("embedding_scale", 1.0)?;
    config.logit_scale = keys.positive_or("logit_scale", 1.0)?;
    let recurrence = LinearRecurrence {
        may_lack_norm: true,
        ..LinearRecurrence::read(keys, Rule::Mamba2)?
    };
    config.recurrence = Some(Recurrence::Linear(recurrence));
    for layer in &mut config.layers {
        layer.mixing = Mixing::Both;
    }
    Ok(())
}
