//! Granite (Granite Team 2024): a Llama with multipliers of embeddings, scores, residuals and logits.

use super::{Keys, ModelConfig, llama};
use crate::Result;

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    config.embedding_scale = keys.positive_or("embedding_scale", 1.0)?;
    config.residual_scale = keys.positive_or("residual_scale", 1.0)?;
    // The file holds what logits are divided by.
    config.logit_scale = keys.positive_or("logit_scale", 1.0)?.recip();
    Ok(())
}
