//! EmbeddingGemma (Vera et al. 2025, <https://arxiv.org/abs/2509.20354>): Gemma 3 whose tokens attend to each other;
//! the mean of the tokens' vectors passes two dense layers.

use super::{architecture::Architecture, gemma3};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, Window},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gemma-embedding",
    model_types: &[],
    bidirectional_model_types: &["gemma3_text"],
    configure,
    ..gemma3::ARCHITECTURE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma3::configure(keys, config)?;
    config.is_causal = false;
    // A token sees half of the window on each side.
    for layer in &mut config.layers {
        layer.window = layer.window.map(|it| Window::Sliding(it.tokens() / 2 + 1));
    }
    Ok(())
}
