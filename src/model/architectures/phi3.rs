//! Phi-3 and Phi-4 mini (Abdin et al. 2024, <https://arxiv.org/abs/2404.14219>): queries, keys and values in
//! one tensor, gate and up in another, as every architecture may have them; a window; LongRoPE, whose
//! files do not say that they scale.

use super::{Keys, ModelConfig};
use crate::{Result, model::config::Scaling};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.set_windows(keys.size_or_zero("attention.sliding_window")?, |_| true);
    let context_tokens = config.context_tokens;
    let original = keys.size_if("rope.scaling.original_context_length")?;
    let magnitude = keys.positive_or("rope.scaling.attn_factor", 1.0)?;
    if let (Some(rope), Some(original_tokens)) = (config.rope_mut(), original)
        && original_tokens < context_tokens
    {
        rope.scaling = Scaling::Long {
            original_tokens,
            magnitude,
        };
    }
    Ok(())
}
