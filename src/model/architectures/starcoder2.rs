//! StarCoder 2 (Lozhkov et al. 2024, <https://arxiv.org/abs/2402.19173>): layer norms, a feed-forward
//! layer without a gate, an optional sliding window.

use super::{architecture::Architecture, shared::window_in_all_layers};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, Keys, ModelConfig, NormKind},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "starcoder2",
    model_types: &["starcoder2"],
    configure,
    json_numbers: &[("norm_epsilon", "attention.layer_norm_epsilon")],
    tensors: &[&[
        ("model.layers.*.mlp.c_fc", "blk.*.ffn_up"),
        ("model.layers.*.mlp.c_proj", "blk.*.ffn_down"),
    ]],
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm = NormKind::Layer;
    config.feed_forward = FeedForwardKind::Plain(Activation::Gelu);
    window_in_all_layers(keys, config)
}
