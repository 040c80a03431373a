//! Gemma 3 (Gemma Team 2025, <https://arxiv.org/abs/2503.19786>): of six layers, five have a sliding window
//! and a rotary base of their own and one attends to everything; norms of each query and key head, and on
//! both sides of attention and feed-forward.

use super::{architecture::Architecture, gemma, gemma2, shared::QK_NORM_TENSORS};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, LayerRope, ModelConfig, NormPlaces, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gemma3",
    model_types: &["gemma3_text"],
    configure,
    read_json,
    json_numbers: &[
        ("attention_multiplier", "attention.scale"),
        ("final_logit_softcapping", "final_logit_softcapping"),
    ],
    tensors: &[QK_NORM_TENSORS, gemma2::NORMS],
    ..gemma::ARCHITECTURE
};

/// The last layer of each period has no window.
const PERIOD_LAYERS: usize = 6;

pub fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma::configure(keys, config)?;
    config.norm_places = NormPlaces::BOTH;
    config.qk_norm = QkNorm::Heads;
    config.logit_soft_cap = keys.positive("final_logit_softcapping")?;
    let is_local = |layer: usize| layer % PERIOD_LAYERS != PERIOD_LAYERS - 1;
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, is_local);
    for (i, layer) in config.layers.iter_mut().enumerate() {
        if is_local(i) {
            layer.rope = LayerRope::Local;
        }
    }
    if let Some(rope) = config.rope_mut() {
        rope.local_base.get_or_insert(10_000.0);
    }
    gemma::scale_27b(config, 62);
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    for key in ["sliding_window_pattern", "_sliding_window_pattern"] {
        let period = json.size(key)?;
        json.require(key, period.is_none_or(|it| it as usize == PERIOD_LAYERS))?;
    }
    let key = "attn_logit_softcapping";
    json.require(key, json.get(key).is_none())?;
    gemma::read_attention_scale(json)
}
