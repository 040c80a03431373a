//! The text models of Qwen2-VL and Qwen2.5-VL (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>): a Qwen2 with
//! rotary positions of three parts.

use super::architecture::Architecture;
use crate::{
    Result,
    model::config::{Keys, ModelConfig, RopeParts},
};

/// Its Hugging Face folders hold the tower as well, and are not read.
pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen2vl",
    configure,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if let Some(rope) = config.rope_mut() {
        let sections = RopeParts::read_sections(keys, rope.dims / 2)?;
        rope.parts = Some(RopeParts::Sections(sections));
    }
    Ok(())
}
