//! GPT-2 (Radford et al. 2019): learned positions, layer norms, a feed-forward layer without gate.

use super::{Keys, ModelConfig};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, NormKind, Positions},
};

pub(super) fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm = NormKind::Layer;
    config.positions = Positions::Learned;
    config.feed_forward = FeedForwardKind::Plain(Activation::Gelu);
    Ok(())
}
