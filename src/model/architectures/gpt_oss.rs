//! gpt-oss (OpenAI 2025, <https://arxiv.org/abs/2508.10925>): a mixture of experts with biases everywhere, an
//! activation with limits, a score without a value in each softmax (attention sinks), and a sliding window in every other
//! layer.

use super::{architecture::Architecture, shared::set_experts};
use crate::{
    Result,
    model::config::{Activation, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gpt-oss",
    configure,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.ffn_norm = "post_attention_norm";
    config.has_sinks = true;
    config.has_gate_biases = true;
    config.feed_forward = FeedForwardKind::Gated(Activation::ClampedSilu);
    set_experts(keys, config, true)?;
    config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    let window = keys.size_or_zero("attention.sliding_window")?;
    config.set_windows(window, |layer| layer.is_multiple_of(2));
    Ok(())
}
