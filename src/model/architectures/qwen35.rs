//! Qwen3.5: gated delta nets in three of four layers, attention with gated outputs in the others. Of the blocks that
//! predict further tokens, the first one drafts.

use super::{
    architecture::{AddKey, Architecture, Form, Names, Parameter},
    shared::QK_NORM_TENSORS,
};
use crate::{
    Error, Result,
    model::config::{
        ConfigJson, Keys, LinearRecurrence, Mixing, ModelConfig, QkNorm, Recurrence, RopeParts,
        Rule, json::missing, recurrence::TILED_HEADS,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen35",
    model_types: &["qwen3_5_text"],
    configure,
    read_json,
    add_keys,
    json_sizes: SIZES,
    tensors: &[TENSORS, QK_NORM_TENSORS],
    parameters: |_| &PARAMETERS,
    other_parts: OTHER_PARTS,
    norm_offset: 1.0,
    ..Architecture::LLAMA_LIKE
};

pub(super) const SIZES: Names = &[
    ("linear_conv_kernel_dim", "ssm.conv_kernel"),
    ("linear_key_head_dim", "ssm.state_size"),
    ("linear_num_key_heads", "ssm.group_count"),
    ("linear_num_value_heads", "ssm.time_step_rank"),
];

/// The tower, and the blocks that predict further tokens.
pub(super) const OTHER_PARTS: &[&str] = &["model.visual.", "visual.", "mtp."];

pub(super) const TENSORS: Names = &[
    (
        "model.layers.*.post_attention_layernorm",
        "blk.*.post_attention_norm",
    ),
    ("model.layers.*.linear_attn.in_proj_qkv", "blk.*.attn_qkv"),
    ("model.layers.*.linear_attn.in_proj_z", "blk.*.attn_gate"),
    ("model.layers.*.linear_attn.in_proj_b", "blk.*.ssm_beta"),
    ("model.layers.*.linear_attn.in_proj_a", "blk.*.ssm_alpha"),
    ("model.layers.*.linear_attn.conv1d", "blk.*.ssm_conv1d"),
    ("model.layers.*.linear_attn.out_proj", "blk.*.ssm_out"),
];

/// Nothing is added to the norm of a delta net.
pub(super) const PARAMETERS: [Parameter; 3] = [
    Parameter {
        from: "model.layers.*.linear_attn.norm.weight",
        to: &[("blk.*.ssm_norm.weight", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.linear_attn.A_log",
        to: &[("blk.*.ssm_a", Form::NegatedExp)],
    },
    Parameter {
        from: "model.layers.*.linear_attn.dt_bias",
        to: &[("blk.*.ssm_dt.bias", Form::SAME)],
    },
];

/// The fraction of a head that rotates where a `config.json` does not state it.
const ROTATED: f64 = 0.25;

/// Pairs that turn by time, row and column where neither a file nor a `config.json` states it.
const SECTIONS: [usize; 3] = [11, 11, 10];

pub(super) fn read_json(json: &mut ConfigJson) -> Result<()> {
    let key = "attn_output_gate";
    json.require(key, json.bool(key)? != Some(false))?;
    let key = "partial_rotary_factor";
    let rope = json.object("rope_parameters")?;
    if rope.is_none_or(|rope| rope.get(key).is_none()) {
        json.add(key, ROTATED);
    }
    Ok(())
}

pub(super) fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let heads = json.needed("linear_num_value_heads")?;
    let values = json.needed("linear_value_head_dim")?;
    add("ssm.inner_size", heads.saturating_mul(values).into());
    add(TILED_HEADS, false.into());
    if let Some(interval) = json.size("full_attention_interval")? {
        add("full_attention_interval", interval.into());
    }
    match json.strings("layer_types")? {
        Some(kinds) => {
            let recurrent = kinds.iter().map(|kind| *kind == "linear_attention");
            add(
                "attention.recurrent_layers",
                recurrent.collect::<Vec<_>>().into(),
            );
            Ok(())
        }
        None if json.get("full_attention_interval").is_some() => Ok(()),
        None => Err(missing("layer_types")),
    }
}

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    config.has_output_gate = true;
    config.ffn_norm = "post_attention_norm";
    let recurrence = LinearRecurrence::read(keys, Rule::Delta)?;
    if recurrence.key_len != recurrence.value_len {
        return Err(keys.unsupported("keys and values of different lengths"));
    }
    config.recurrence = Some(Recurrence::Linear(recurrence));
    if let Some(rope) = config.rope_mut() {
        rope.parts = parts(keys, rope.dims / 2)?;
    }
    let name = keys.name("attention.recurrent_layers");
    let recurrent = keys.metadata().bools(&name)?;
    let interval = keys.size_or("full_attention_interval", 4)?;
    for (i, layer) in config.layers.iter_mut().enumerate() {
        let is_recurrent = match recurrent {
            None => !(i + 1).is_multiple_of(interval),
            Some(recurrent) => *recurrent
                .get(i)
                .ok_or_else(|| Error::InvalidModelFile(format!("{name} has too few entries")))?,
        };
        if is_recurrent {
            layer.mixing = Mixing::Recurrence;
        }
    }
    let ignored = keys.size_or_zero("nextn_predict_layers")?.unwrap_or(0);
    if ignored >= config.layers.len() {
        return Err(keys.unsupported(&format!("{ignored} nextn_predict_layers")));
    }
    config.layers.truncate(config.layers.len() - ignored);
    config.passes.layers = config.layers.len();
    config.ignored_blocks = ignored;
    Ok(())
}

/// The part of a position that each of the rotated pairs turns by, where images have positions of several parts.
fn parts(keys: &Keys, pairs: usize) -> Result<Option<RopeParts>> {
    let is_stated = keys
        .metadata()
        .sizes(&keys.name("rope.dimension_sections"))?;
    let sections = match is_stated {
        Some(_) => RopeParts::read_sections(keys, pairs)?,
        None if pairs == SECTIONS.iter().sum::<usize>() => SECTIONS,
        None => return Ok(None),
    };
    Ok(Some(RopeParts::Interleaved(sections)))
}
