//! Qwen3 (Yang et al. 2025, <https://arxiv.org/abs/2505.09388>): norms of each query and key head.

use super::{Keys, ModelConfig};
use crate::{Result, model::config::QkNorm};

pub(super) fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    Ok(())
}
