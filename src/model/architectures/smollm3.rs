//! SmolLM3 (Hugging Face 2025): a Llama without rotary embedding in every fourth layer (NoPE, Kazemnejad
//! et al. 2023, <https://arxiv.org/abs/2305.19466>).

use super::{architecture::Architecture, llama};
use crate::{
    Result,
    model::config::{Keys, LayerRope, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "smollm3",
    model_types: &["smollm3"],
    configure,
    ..llama::ARCHITECTURE
};

/// The last layer of each period has no rotary embedding.
const PERIOD_LAYERS: usize = 4;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    let last_of_periods = config.layers.iter_mut().skip(PERIOD_LAYERS - 1);
    for layer in last_of_periods.step_by(PERIOD_LAYERS) {
        layer.rope = LayerRope::None;
    }
    Ok(())
}
