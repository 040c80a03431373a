//! Granite 4 hybrids: Mamba 2 in most layers, attention without positions in the others, and the factors of Granite.

use super::{
    architecture::Architecture,
    granite,
    shared::{recurrent_without_kv_heads, set_experts_with_shared},
};
use crate::{
    Result,
    model::config::{Keys, LayerRope, LinearRecurrence, ModelConfig, Recurrence, RopePairs, Rule},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "granitehybrid",
    configure,
    gguf_pairs: RopePairs::Adjacent,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    granite::set_factors(keys, config)?;
    if keys.size_or_zero("expert_count")?.is_some() {
        set_experts_with_shared(keys, config, true, false)?;
        config.ffn_dim = keys.size_or("expert_feed_forward_length", config.ffn_dim)?;
    }
    let recurrence = LinearRecurrence::read(keys, Rule::Mamba2)?;
    config.recurrence = Some(Recurrence::Linear(recurrence));
    // The key stands for whether positions enter at all.
    if keys.bool("rope.scaling.finetuned")? == Some(false) {
        for layer in &mut config.layers {
            layer.rope = LayerRope::None;
        }
    }
    recurrent_without_kv_heads(keys, config)
}
