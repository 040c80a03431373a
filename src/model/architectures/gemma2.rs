//! Gemma 2 (Gemma Team 2024, <https://arxiv.org/abs/2408.00118>): a sliding window in every other layer,
//! norms on both sides of attention and feed-forward, soft caps.

use super::{
    architecture::{Architecture, Names},
    gemma,
};
use crate::{
    Error, Result,
    model::config::{ConfigJson, Keys, ModelConfig, NormPlaces},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gemma2",
    model_types: &["gemma2"],
    configure,
    read_json,
    json_numbers: &[
        ("attention_multiplier", "attention.scale"),
        ("attn_logit_softcapping", "attn_logit_softcapping"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ],
    tensors: &[NORMS],
    ..gemma::ARCHITECTURE
};

/// The norms of layers, in Gemma 3 too.
pub const NORMS: Names = &[
    (
        "model.layers.*.post_attention_layernorm",
        "blk.*.post_attention_norm",
    ),
    ("model.layers.*.pre_feedforward_layernorm", "blk.*.ffn_norm"),
    (
        "model.layers.*.post_feedforward_layernorm",
        "blk.*.post_ffw_norm",
    ),
];

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma::configure(keys, config)?;
    config.norm_places = NormPlaces::BOTH;
    config.attention_soft_cap = Some(keys.positive_or("attn_logit_softcapping", 50.0)?);
    config.logit_soft_cap = Some(keys.positive_or("final_logit_softcapping", 30.0)?);
    let window = keys.size_or("attention.sliding_window", 4096)?;
    config.set_windows(Some(window), |layer| layer.is_multiple_of(2));
    gemma::scale_27b(config, 46);
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    // Null turns a member off, absence means its default.
    for key in [
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "sliding_window",
    ] {
        if json.is_null(key) {
            return Err(Error::UnsupportedModel(format!("gemma2 without {key}")));
        }
    }
    gemma::read_attention_scale(json)
}
