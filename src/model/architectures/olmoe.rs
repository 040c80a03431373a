//! OLMoE (Muennighoff et al. 2024, <https://arxiv.org/abs/2409.02060>): experts by a softmax over all of
//! them; norms of all query heads and all key heads at once.

use super::{Keys, ModelConfig, experts};
use crate::{Result, model::config::QkNorm};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Rows;
    config.feed_forward = experts(keys, false)?;
    config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    Ok(())
}
