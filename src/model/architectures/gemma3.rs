//! Gemma 3 (Gemma Team 2025, <https://arxiv.org/abs/2503.19786>): of six layers five have a window and
//! quick rotations, one sees all; norms of each query and key head, and on both sides of each half of
//! a layer.

use super::{Keys, ModelConfig, gemma};
use crate::{
    Result,
    model::config::{NormPlaces, QkNorm, Rotation},
};

/// Layers of the model with 27 billion parameters, whose queries are scaled by another length.
const LAYERS_27B: usize = 62;
/// Every so many layers one sees everything.
const PATTERN: usize = 6;

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma::configure(keys, config)?;
    config.norm_places = NormPlaces {
        before: true,
        after: true,
    };
    config.qk_norm = QkNorm::Heads;
    config.logit_soft_cap = keys.positive("final_logit_softcapping")?;
    let is_local = |layer: usize| layer % PATTERN != PATTERN - 1;
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, is_local);
    for (i, layer) in config.layers.iter_mut().enumerate() {
        if is_local(i) {
            layer.rotation = Rotation::Local;
        }
    }
    if let Some(rope) = config.rope_mut() {
        rope.local_base.get_or_insert(10_000.0);
    }
    if config.layers.len() == LAYERS_27B {
        config.attention_scale = Some(((config.dim / config.heads) as f32).sqrt().recip());
    }
    Ok(())
}
