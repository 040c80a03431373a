//! Gemma 2 (Gemma Team 2024, <https://arxiv.org/abs/2408.00118>): a window in every other layer, norms
//! on both sides of each half of a layer, soft caps.

use super::{Keys, ModelConfig, gemma};
use crate::{Result, model::config::NormPlaces};

/// Layers of the model with 27 billion parameters, whose queries are scaled by another length.
const LAYERS_27B: usize = 46;

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma::configure(keys, config)?;
    config.norm_places = NormPlaces {
        before: true,
        after: true,
    };
    config.attention_soft_cap = Some(keys.positive_or("attn_logit_softcapping", 50.0)?);
    config.logit_soft_cap = Some(keys.positive_or("final_logit_softcapping", 30.0)?);
    let window = keys.size_or("attention.sliding_window", 4096)?;
    config.set_windows(Some(window), |layer| layer.is_multiple_of(2));
    if config.layers.len() == LAYERS_27B {
        config.attention_scale = Some(((config.dim / config.heads) as f32).sqrt().recip());
    }
    Ok(())
}
