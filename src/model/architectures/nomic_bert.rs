//! Nomic Embed (Nussbaum et al. 2024, <https://arxiv.org/abs/2402.01613>): a BERT with rotary positions and gated
//! feed-forward layers, without biases of matrices. GGUF files only: folders need code of their own.

use super::{architecture::Architecture, bert};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "nomic-bert",
    configure,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    bert::configure_encoder(keys, config)?;
    config.feed_forward = FeedForwardKind::Gated(Activation::Silu);
    Ok(())
}
