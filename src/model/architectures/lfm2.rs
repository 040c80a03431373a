//! LFM2 (Liquid AI 2025, <https://arxiv.org/abs/2511.23404>): short convolutions between gates in place of attention in
//! most layers.

use super::{
    architecture::{AddKey, Architecture, Names},
    shared::{kv_heads_of_layers, recurrent_without_kv_heads},
};
use crate::{
    Error, Result,
    model::config::{ConfigJson, Keys, ModelConfig, QkNorm, Recurrence, recurrence::taps},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "lfm2",
    model_types: &["lfm2"],
    configure,
    read_json,
    add_keys,
    json_sizes: &[CONVOLUTION],
    tensors: &[TENSORS],
    // The towers of models that take images or sound.
    other_parts: &["model.vision_tower.", "model.multi_modal_projector."],
    ..Architecture::LLAMA_LIKE
};

pub(super) const CONVOLUTION: (&str, &str) = ("conv_L_cache", "shortconv.l_cache");

pub(super) const TENSORS: Names = &[
    ("model.embedding_norm", "token_embd_norm"),
    ("model.layers.*.operator_norm", "blk.*.attn_norm"),
    ("model.layers.*.ffn_norm", "blk.*.ffn_norm"),
    ("model.layers.*.conv.conv", "blk.*.shortconv.conv"),
    ("model.layers.*.conv.in_proj", "blk.*.shortconv.in_proj"),
    ("model.layers.*.conv.out_proj", "blk.*.shortconv.out_proj"),
    ("model.layers.*.self_attn.out_proj", "blk.*.attn_output"),
    ("model.layers.*.self_attn.q_layernorm", "blk.*.attn_q_norm"),
    ("model.layers.*.self_attn.k_layernorm", "blk.*.attn_k_norm"),
    ("model.layers.*.feed_forward.w1", "blk.*.ffn_gate"),
    ("model.layers.*.feed_forward.w3", "blk.*.ffn_up"),
    ("model.layers.*.feed_forward.w2", "blk.*.ffn_down"),
];

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    config.output_norm_name = "token_embd_norm";
    config.recurrence = Some(Recurrence::ShortConv {
        taps: taps(keys, "shortconv.l_cache")?,
    });
    recurrent_without_kv_heads(keys, config)
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    read_members(json)?;
    if let Some(width) = json.size("block_ff_dim")? {
        json.set("intermediate_size", width);
    }
    // The width that follows from the one of a feed-forward without a gate.
    if json.bool("block_auto_adjust_ff_dim")? != Some(false) {
        let plain = f64::from(json.needed("intermediate_size")?);
        let factor = json.number("block_ffn_dim_multiplier")?.unwrap_or(1.0);
        let width = ((2.0 * plain / 3.0).floor() * factor) as u32;
        let multiple = json.size("block_multiple_of")?.unwrap_or(256).max(1);
        let width = width.checked_next_multiple_of(multiple);
        let width = width.ok_or_else(|| {
            Error::InvalidModelFile("config.json: the feed-forward is too wide".into())
        })?;
        json.set("intermediate_size", width);
    }
    Ok(())
}

/// The members that models with and without experts have.
pub(super) fn read_members(json: &mut ConfigJson) -> Result<()> {
    for name in ["norm_eps", "block_norm_eps"] {
        json.rename(name, "rms_norm_eps");
    }
    json.require("conv_bias", json.bool("conv_bias")? != Some(true))?;
    // Earlier folders list the layers with attention.
    if let (Some(attention), None) = (json.numbers("full_attn_idxs")?, json.get("layer_types")) {
        let layers = 0..json.needed("num_hidden_layers")?.min(1024);
        let kinds = layers.map(|layer| match attention.contains(&(layer as f32)) {
            true => "full_attention",
            false => "conv",
        });
        json.set("layer_types", kinds.collect::<Vec<_>>());
    }
    Ok(())
}

pub(super) fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    kv_heads_of_layers(json, add)
}
