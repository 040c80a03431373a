//! The text model of Qwen3-VL (Bai et al. 2025, <https://arxiv.org/abs/2511.21631>): a Qwen3 with rotary positions of
//! three parts, whose first layers take values of images.

use super::{architecture::Architecture, qwen2, qwen3, shared::QK_NORM_TENSORS};
use crate::{
    Error, Result,
    model::config::{Keys, ModelConfig, RopeParts},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3vl",
    model_types: &["qwen3_vl_text"],
    configure,
    read_json: qwen2::read_json,
    json_sizes: &[(DEEPSTACK_LAYERS, "n_deepstack_layers")],
    tensors: &[QK_NORM_TENSORS],
    ..Architecture::LLAMA_LIKE
};

/// Member of `config.json` with the number of layers that take values of images. The tower's configuration has it; it is
/// copied from there.
pub const DEEPSTACK_LAYERS: &str = "deepstack_layers";

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen3::configure(keys, config)?;
    config.deepstack_layers = keys.size_or_zero("n_deepstack_layers")?.unwrap_or(0);
    if config.deepstack_layers > config.layers.len() {
        return Err(Error::InvalidModelFile(format!(
            "{} is more than there are layers",
            keys.name("n_deepstack_layers")
        )));
    }
    if let Some(rope) = config.rope_mut() {
        let sections = RopeParts::read_sections(keys, rope.dims / 2)?;
        rope.parts = Some(RopeParts::Interleaved(sections));
    }
    Ok(())
}
