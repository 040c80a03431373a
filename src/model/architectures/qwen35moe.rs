//! Qwen3.5 with a mixture of experts, and a feed-forward beside it that a gate weighs.

use super::{architecture::Architecture, qwen35, shared::set_experts_with_shared};
use crate::{
    Result,
    model::config::{Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen35moe",
    configure,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    qwen35::configure(keys, config)?;
    set_experts_with_shared(keys, config, true, true)?;
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}
