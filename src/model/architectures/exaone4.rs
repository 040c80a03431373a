//! EXAONE 4.0 (LG AI Research 2025, <https://arxiv.org/abs/2507.11407>): norms on the outputs of attention and
//! feed-forward, and of each query and key head. Larger models have a sliding window in three of four layers and no
//! rotary embedding in the others.

use super::{architecture::Architecture, olmo2, shared::QK_NORM_TENSORS};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, LayerRope, ModelConfig, NormPlaces, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "exaone4",
    model_types: &["exaone4"],
    configure,
    read_json,
    tensors: &[QK_NORM_TENSORS, olmo2::NORMS],
    ..Architecture::LLAMA_LIKE
};

/// The last layer of each period is global, where files do not list the kinds of layers.
const PERIOD_LAYERS: usize = 4;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm_places = NormPlaces::AFTER;
    config.qk_norm = QkNorm::Heads;
    let Some(window) = keys.size_or_zero("attention.sliding_window")? else {
        return Ok(());
    };
    let is_local = keys.layer_flags("attention.sliding_window_pattern", config.layers.len())?;
    let is_local = |layer: usize| match is_local {
        Some(is_local) => is_local[layer],
        None => layer % PERIOD_LAYERS != PERIOD_LAYERS - 1,
    };
    config.set_windows(Some(window), is_local);
    for layer in &mut config.layers {
        if layer.window.is_none() {
            layer.rope = LayerRope::None;
        }
    }
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let key = "sliding_window_pattern";
    let is_usual = match json.get(key) {
        None => true,
        Some(pattern) => *pattern == "LLLG" || *pattern == PERIOD_LAYERS,
    };
    json.require(key, is_usual || json.get("sliding_window").is_none())
}
