//! Qwen3 (Yang et al. 2025, <https://arxiv.org/abs/2505.09388>): norms of each query and key head.

use super::{architecture::Architecture, qwen2, shared::QK_NORM_TENSORS};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3",
    model_types: &["qwen3"],
    configure,
    read_json: qwen2::read_json,
    tensors: &[QK_NORM_TENSORS],
    ..Architecture::LLAMA_LIKE
};

pub fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    Ok(())
}
