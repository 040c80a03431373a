//! Hugging Face folders of Gemma 4: names of tensors, and the members of `config.json` that become sizes of layers.

use super::architecture::{AddKey, Form, Names, Parameter};
use crate::{
    Result,
    model::config::{ConfigJson, json::missing},
};

pub(super) const SIZES: Names = &[
    (
        "hidden_size_per_layer_input",
        "embedding_length_per_layer_input",
    ),
    ("num_kv_shared_layers", "attention.shared_kv_layers"),
    ("num_experts", "expert_count"),
    ("top_k_experts", "expert_used_count"),
    ("moe_intermediate_size", "expert_feed_forward_length"),
    (LOCAL_HEAD_DIM, "attention.key_length_swa"),
    (LOCAL_HEAD_DIM, "attention.value_length_swa"),
    (LOCAL_HEAD_DIM, "rope.dimension_count_swa"),
];

pub(super) const NUMBERS: Names = &[("final_logit_softcapping", "final_logit_softcapping")];

/// Towers of images and sound, and their projections.
pub(super) const OTHER_PARTS: &[&str] = &[
    "model.vision_tower.",
    "model.embed_vision.",
    "model.audio_tower.",
    "model.embed_audio.",
];

pub(super) const TENSORS: Names = &[
    ("model.embed_tokens_per_layer", "per_layer_token_embd"),
    ("model.per_layer_model_projection", "per_layer_model_proj"),
    ("model.per_layer_projection_norm", "per_layer_proj_norm"),
    ("model.layers.*.self_attn.q_norm", "blk.*.attn_q_norm"),
    ("model.layers.*.self_attn.k_norm", "blk.*.attn_k_norm"),
    (
        "model.layers.*.post_attention_layernorm",
        "blk.*.post_attention_norm",
    ),
    ("model.layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm"),
    (
        "model.layers.*.post_feedforward_layernorm",
        "blk.*.post_ffw_norm",
    ),
    (
        "model.layers.*.post_feedforward_layernorm_1",
        "blk.*.post_ffw_norm_1",
    ),
    (
        "model.layers.*.pre_feedforward_layernorm_2",
        "blk.*.pre_ffw_norm_2",
    ),
    (
        "model.layers.*.post_feedforward_layernorm_2",
        "blk.*.post_ffw_norm_2",
    ),
    ("model.layers.*.router.proj", "blk.*.ffn_gate_inp"),
    ("model.layers.*.per_layer_input_gate", "blk.*.inp_gate"),
    ("model.layers.*.per_layer_projection", "blk.*.proj"),
    (
        "model.layers.*.post_per_layer_input_norm",
        "blk.*.post_norm",
    ),
];

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        from: "model.layers.*.layer_scalar",
        to: &[("blk.*.layer_output_scale.weight", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.router.scale",
        to: &[("blk.*.ffn_gate_inp.scale", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.router.per_expert_scale",
        to: &[("blk.*.ffn_down_exps.scale", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.experts.gate_up_proj",
        to: &[("blk.*.ffn_gate_up_exps.weight", Form::SAME)],
    },
    Parameter {
        from: "model.layers.*.experts.down_proj",
        to: &[("blk.*.ffn_down_exps.weight", Form::SAME)],
    },
];

/// Head length of layers with a window. `head_dim` becomes that of the others.
const LOCAL_HEAD_DIM: &str = "local_head_dim";
/// Head length of global layers where a `config.json` does not state it.
const GLOBAL_HEAD_DIM: u32 = 512;
const GLOBAL_KV_HEADS: &str = "num_global_key_value_heads";

pub(super) fn read_json(json: &mut ConfigJson) -> Result<()> {
    // Models without experts may state their sizes.
    if json.bool("enable_moe_block")? != Some(true) {
        json.remove("num_experts");
    }
    for key in ["num_experts", "hidden_size_per_layer_input"] {
        if json.get(key).is_some_and(|it| *it == 0) {
            json.remove(key);
        }
    }
    let kinds = json.strings("layer_types")?;
    let kinds = kinds.ok_or_else(|| missing("layer_types"))?;
    let global = kinds.iter().position(|kind| *kind == "full_attention");
    // Later folders list what global layers have of their own.
    let of_layers = json.object("per_layer_config")?;
    let of_global = match (of_layers, global) {
        (Some(of_layers), Some(layer)) => of_layers.object(&layer.to_string())?,
        _ => None,
    };
    let (mut head_dim, mut kv_heads) = (json.size("global_head_dim")?, None);
    if let Some(own) = &of_global {
        head_dim = own.size("head_dim")?.or(head_dim);
        kv_heads = own.size("num_key_value_heads")?;
    }
    let local = json.head_dim()?;
    json.set(LOCAL_HEAD_DIM, local);
    json.set("head_dim", head_dim.unwrap_or(GLOBAL_HEAD_DIM));
    if let Some(kv_heads) = kv_heads {
        json.set(GLOBAL_KV_HEADS, kv_heads);
    } else if json.bool("attention_k_eq_v")? != Some(true) {
        json.remove(GLOBAL_KV_HEADS);
    }
    Ok(())
}

pub(super) fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let kinds = json.strings("layer_types")?.unwrap_or_default();
    let is_local: Vec<bool> = kinds
        .iter()
        .map(|kind| *kind == "sliding_attention")
        .collect();
    let kv_heads = json.needed("num_key_value_heads")?;
    let global = json.size(GLOBAL_KV_HEADS)?.unwrap_or(kv_heads);
    let heads = is_local.iter().map(|is_local| match is_local {
        true => kv_heads as i32,
        false => global as i32,
    });
    add("attention.head_count_kv", heads.collect::<Vec<_>>().into());
    let width = json.needed("intermediate_size")?;
    let shared = json.size("num_kv_shared_layers")?.unwrap_or(0) as usize;
    let is_wide = json.bool("use_double_wide_mlp")? == Some(true);
    let own = kinds.len().saturating_sub(shared);
    let widths = (0..kinds.len()).map(|layer| match layer >= own && is_wide {
        true => width.saturating_mul(2) as i32,
        false => width as i32,
    });
    add("feed_forward_length", widths.collect::<Vec<_>>().into());
    add("attention.sliding_window_pattern", is_local.into());
    Ok(())
}
