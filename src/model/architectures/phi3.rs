//! Phi-3 and Phi-4 mini (Abdin et al. 2024, <https://arxiv.org/abs/2404.14219>): fused tensors for queries,
//! keys and values and for gate and up (which the loader accepts in every architecture), a sliding window,
//! and LongRoPE, whose GGUF files do not name a scaling type.

use super::{architecture::Architecture, shared::window_in_all_layers};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, Scaling},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "phi3",
    model_types: &["phi3"],
    configure,
    tensors: &[&[
        ("model.layers.*.self_attn.qkv_proj", "blk.*.attn_qkv"),
        ("model.layers.*.mlp.gate_up_proj", "blk.*.ffn_up"),
    ]],
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    window_in_all_layers(keys, config)?;
    let context_tokens = config.context_tokens;
    let original = keys.size_if("rope.scaling.original_context_length")?;
    let magnitude = keys.positive_or("rope.scaling.attn_factor", 1.0)?;
    if let (Some(rope), Some(original_tokens)) = (config.rope_mut(), original)
        && original_tokens < context_tokens
    {
        rope.scaling = Scaling::Long {
            original_tokens,
            magnitude,
        };
    }
    Ok(())
}
