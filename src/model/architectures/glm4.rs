//! GLM-4-0414 (Team GLM 2024, <https://arxiv.org/abs/2406.12793>): norms on both sides of attention and
//! feed-forward, biases of queries, keys and values, one tensor for gate and up, and a rotation of the first half
//! of each head, in adjacent pairs.

use super::architecture::Architecture;
use crate::{
    Result,
    model::config::{Keys, ModelConfig, NormPlaces, RopePairs},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "glm4",
    model_types: &["glm4"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    checkpoint_pairs: RopePairs::Adjacent,
    tensors: &[&[
        (
            "model.layers.*.post_self_attn_layernorm",
            "blk.*.post_attention_norm",
        ),
        ("model.layers.*.post_mlp_layernorm", "blk.*.post_ffw_norm"),
        ("model.layers.*.mlp.gate_up_proj", "blk.*.ffn_up"),
    ]],
    ..Architecture::LLAMA_LIKE
};

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm_places = NormPlaces::BOTH;
    Ok(())
}
