//! StarCoder 2 (Lozhkov et al. 2024, <https://arxiv.org/abs/2402.19173>): layer norms, a feed-forward
//! layer without gate, a window where the file names one.

use super::{Keys, ModelConfig};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, NormKind},
};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm = NormKind::Layer;
    config.feed_forward = FeedForwardKind::Plain(Activation::Gelu);
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, |_| true);
    Ok(())
}
