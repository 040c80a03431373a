//! Qwen3 with experts: their weights sum up to one.

use super::{Keys, ModelConfig, experts, qwen3};
use crate::Result;

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen3::configure(keys, config)?;
    config.feed_forward = experts(keys, true)?;
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}
