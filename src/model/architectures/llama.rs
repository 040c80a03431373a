//! Llama (Touvron et al. 2023, <https://arxiv.org/abs/2302.13971>) and what is converted as one:
//! Mistral, Mixtral, SmolLM2.

use super::{Keys, ModelConfig, experts};
use crate::Result;

/// Set where a checkpoint's rows are in the order of their making: what is rotated together lies half a
/// head apart.
const NEOX: &str = "rope.neox";

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    // Converters to GGUF reorder the rows of queries and keys, so that pairs are neighbours.
    if let Some(rope) = config.rope_mut() {
        rope.gguf_neox = false;
        rope.neox = keys.bool_or(NEOX, false)?;
    }
    if keys.size_or_zero("expert_count")?.is_some() {
        config.feed_forward = experts(keys, true)?;
    }
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, |_| true);
    Ok(())
}
