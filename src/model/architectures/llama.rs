//! Llama (Touvron et al. 2023, <https://arxiv.org/abs/2302.13971>), and what is converted to GGUF as a
//! Llama: Mistral, Mixtral, SmolLM2.

use super::{
    architecture::{Architecture, Names},
    shared::{EXPERT_SIZES, set_experts, window_in_all_layers},
};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, RopePairs},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "llama",
    model_types: &["llama", "mistral", "mixtral"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    json_sizes: EXPERT_SIZES,
    tensors: &[MIXTRAL],
    ..Architecture::LLAMA_LIKE
};

const MIXTRAL: Names = &[
    ("model.layers.*.block_sparse_moe.gate", "blk.*.ffn_gate_inp"),
    (
        "model.layers.*.block_sparse_moe.experts.*.w1",
        "blk.*.ffn_gate_exps",
    ),
    (
        "model.layers.*.block_sparse_moe.experts.*.w3",
        "blk.*.ffn_up_exps",
    ),
    (
        "model.layers.*.block_sparse_moe.experts.*.w2",
        "blk.*.ffn_down_exps",
    ),
];

pub fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if keys.size_or_zero("expert_count")?.is_some() {
        set_experts(keys, config, true)?;
    }
    window_in_all_layers(keys, config)
}
