//! SmolLM3 (Hugging Face 2025): a Llama of which every fourth layer does not rotate
//! (Kazemnejad et al. 2023, <https://arxiv.org/abs/2305.19466>).

use super::{Keys, ModelConfig, llama};
use crate::{Result, model::config::Rotation};

/// Every so many layers one does not rotate.
const PATTERN: usize = 4;

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    let last_of_pattern = config.layers.iter_mut().skip(PATTERN - 1);
    for layer in last_of_pattern.step_by(PATTERN) {
        layer.rotation = Rotation::None;
    }
    Ok(())
}
