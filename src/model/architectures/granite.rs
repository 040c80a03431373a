//! Granite (Granite Team 2024): a Llama with factors of embeddings, scores, residuals and logits.

use super::{architecture::Architecture, llama};
use crate::{
    Result,
    model::config::{Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "granite",
    model_types: &["granite"],
    configure,
    json_numbers: &[
        ("attention_multiplier", "attention.scale"),
        ("embedding_multiplier", "embedding_scale"),
        ("residual_multiplier", "residual_scale"),
        ("logits_scaling", "logit_scale"),
    ],
    ..llama::ARCHITECTURE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    set_factors(keys, config)
}

/// Reads the factors.
pub(super) fn set_factors(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.embedding_scale = keys.positive_or("embedding_scale", 1.0)?;
    config.residual_scale = keys.positive_or("residual_scale", 1.0)?;
    // Files hold the divisor of logits.
    config.logit_scale = keys.positive_or("logit_scale", 1.0)?.recip();
    Ok(())
}
