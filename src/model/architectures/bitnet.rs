//! BitNet b1.58 (Ma et al. 2024, <https://arxiv.org/abs/2402.17764>): a Llama whose outputs of attention and feed-forward are
//! normalized once more before the last product. Weights have three levels: files have types for them.

use super::architecture::{Architecture, Names};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, Keys, ModelConfig},
};

/// The first models, gated by SiLU.
pub const ARCHITECTURE: Architecture = Architecture {
    name: "bitnet",
    configure,
    ..Architecture::LLAMA_LIKE
};

/// The models since 2025, gated by a squared ReLU (Ma et al. 2025, <https://arxiv.org/abs/2504.12285>).
pub const ARCHITECTURE_2025: Architecture = Architecture {
    name: "bitnet-b1.58",
    model_types: &["bitnet"],
    configure: |keys, config| {
        config.feed_forward = FeedForwardKind::Gated(Activation::SquaredRelu);
        configure(keys, config)
    },
    tensors: &[TENSORS],
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    (
        "model.layers.*.self_attn.attn_sub_norm",
        "blk.*.attn_sub_norm",
    ),
    ("model.layers.*.mlp.ffn_sub_norm", "blk.*.ffn_sub_norm"),
];

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.has_sub_norms = true;
    Ok(())
}
