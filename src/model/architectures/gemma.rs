//! Gemma (Gemma Team 2024, <https://arxiv.org/abs/2403.08295>): embeddings scaled by the root of their
//! width, GELU. Its norms' weights are one more than the checkpoint's: converters add that.

use super::{Keys, ModelConfig};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind},
};

pub(super) fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.embedding_scale = (config.dim as f32).sqrt();
    config.feed_forward = FeedForwardKind::Gated(Activation::Gelu);
    Ok(())
}
