//! EuroBERT (Boizard et al. 2025, <https://arxiv.org/abs/2503.05500>): an encoder whose layers are those of a Llama.

use super::architecture::Architecture;
use crate::{
    Result,
    model::config::{Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "eurobert",
    model_types: &["eurobert"],
    configure,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if keys.bool("attention.causal")? == Some(true) {
        return Err(keys.unsupported("a causal mask"));
    }
    config.is_causal = false;
    Ok(())
}
