//! OLMo 2 (OLMo Team 2024, <https://arxiv.org/abs/2501.00656>): norms on the outputs of attention and
//! feed-forward instead of their inputs; one norm over all query heads and one over all key heads.

use super::{
    architecture::{Architecture, Names},
    shared::QK_NORM_TENSORS,
};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, NormPlaces, QkNorm},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "olmo2",
    model_types: &["olmo2"],
    configure,
    tensors: &[QK_NORM_TENSORS, NORMS],
    ..Architecture::LLAMA_LIKE
};

/// The norms of layers, in EXAONE 4 too.
pub const NORMS: Names = &[
    (
        "model.layers.*.post_attention_layernorm",
        "blk.*.post_attention_norm",
    ),
    (
        "model.layers.*.post_feedforward_layernorm",
        "blk.*.post_ffw_norm",
    ),
];

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm_places = NormPlaces::AFTER;
    config.qk_norm = QkNorm::Rows;
    Ok(())
}
