//! LFM2 with a mixture of experts, which sigmoids select, in all layers but the first ones.

use super::{architecture::Architecture, lfm2, shared::set_experts};
use crate::{
    Result,
    model::config::{FeedForwardKind, Keys, LeadingDense, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "lfm2moe",
    configure,
    ..Architecture::LLAMA_LIKE
};

/// `expert_gating_func` of sigmoids.
const SIGMOID: u32 = 2;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    lfm2::configure(keys, config)?;
    set_experts(keys, config, true)?;
    let gating = keys.metadata().u32(&keys.name("expert_gating_func"))?;
    if gating != Some(SIGMOID) {
        return Err(keys.unsupported(&format!("expert_gating_func {gating:?}")));
    }
    if let FeedForwardKind::Experts(experts) = &mut config.feed_forward {
        experts.is_sigmoid = true;
    }
    let dense = keys.size_or_zero("leading_dense_block_count")?;
    config.leading_dense = dense.map(|layers| LeadingDense {
        layers,
        ffn_dim: config.ffn_dim,
    });
    config.ffn_dim = keys.size("expert_feed_forward_length")?;
    Ok(())
}
