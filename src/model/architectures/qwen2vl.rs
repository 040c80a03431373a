//! The text models of Qwen2-VL and Qwen2.5-VL (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>): a Qwen2 with
//! rotary positions of three parts.

use super::{architecture::Architecture, qwen2};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, RopeParts},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen2vl",
    model_types: &["qwen2_vl_text", "qwen2_5_vl_text"],
    configure,
    read_json: qwen2::read_json,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if let Some(rope) = config.rope_mut() {
        let sections = RopeParts::read_sections(keys, rope.dims / 2)?;
        rope.parts = Some(RopeParts::Sections(sections));
    }
    Ok(())
}
