//! Gemma (Gemma Team 2024, <https://arxiv.org/abs/2403.08295>): embeddings multiplied by the square root of
//! their width, GELU, norms that multiply by one more than the weights of the checkpoint.

use super::architecture::Architecture;
use crate::{
    Result,
    model::config::{Activation, ConfigJson, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gemma",
    model_types: &["gemma"],
    configure,
    read_json,
    norm_offset: 1.0,
    ..Architecture::LLAMA_LIKE
};

pub fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.embedding_scale = (config.dim as f32).sqrt();
    config.feed_forward = FeedForwardKind::Gated(Activation::Gelu);
    Ok(())
}

/// The first Gemma's files say `gelu` and mean the approximation by tanh.
fn read_json(json: &mut ConfigJson) -> Result<()> {
    for key in ["hidden_act", "hidden_activation"] {
        if json.str(key)? == Some("gelu") {
            json.set(key, "gelu_pytorch_tanh");
        }
    }
    Ok(())
}

/// The model with 27 billion parameters, which has `layers` layers, scales attention scores by the width
/// per head and not by the head length. Its GGUF files do not say so.
pub fn scale_27b(config: &mut ModelConfig, layers: usize) {
    if config.layers.len() == layers {
        config.attention_scale = Some(((config.dim / config.heads) as f32).sqrt().recip());
    }
}

/// Gemma 2 and 3 state the square of the divisor of attention scores.
pub fn read_attention_scale(json: &mut ConfigJson) -> Result<()> {
    if let Some(scalar) = json.number("query_pre_attn_scalar")? {
        json.set("attention_multiplier", scalar.powf(-0.5));
    }
    Ok(())
}
