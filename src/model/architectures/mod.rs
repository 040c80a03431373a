//! The architectures that this build runs: a file each, which says what differs from a Llama without
//! rope scaling. Knows nothing of how layers compute.

mod gemma;
mod gemma2;
mod gemma3;
mod gpt2;
mod granite;
mod llama;
mod olmo2;
mod olmoe;
mod phi3;
mod qwen2;
mod qwen3;
mod qwen3moe;
mod smollm3;
mod starcoder2;

use super::config::{Experts, FeedForwardKind, Keys, ModelConfig};
use crate::{Error, Result};

/// Says what differs: changes the configuration of a Llama to that of another architecture.
pub type Configure = fn(&Keys, &mut ModelConfig) -> Result<()>;

/// By `general.architecture`.
const ARCHITECTURES: [(&str, Configure); 14] = [
    ("llama", llama::configure),
    ("qwen2", qwen2::configure),
    ("qwen3", qwen3::configure),
    ("qwen3moe", qwen3moe::configure),
    ("gemma", gemma::configure),
    ("gemma2", gemma2::configure),
    ("gemma3", gemma3::configure),
    ("phi3", phi3::configure),
    ("olmo2", olmo2::configure),
    ("olmoe", olmoe::configure),
    ("smollm3", smollm3::configure),
    ("gpt2", gpt2::configure),
    ("starcoder2", starcoder2::configure),
    ("granite", granite::configure),
];

/// The architecture of this name.
///
/// # Errors
/// [`Error::UnsupportedModel`] that names it and those there are.
pub fn find(name: &str) -> Result<Configure> {
    let found = ARCHITECTURES.iter().find(|(known, _)| *known == name);
    found.map(|(_, configure)| *configure).ok_or_else(|| {
        let known: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
        Error::UnsupportedModel(format!(
            "architecture {name:?}; this build runs {}",
            known.join(", ")
        ))
    })
}

/// The experts that the keys describe; `normalized` as in [`Experts`].
fn experts(keys: &Keys, normalized: bool) -> Result<FeedForwardKind> {
    let experts = Experts {
        count: keys.size("expert_count")?,
        used: keys.size("expert_used_count")?,
        normalized,
    };
    if experts.used > experts.count {
        return Err(Error::InvalidModelFile(format!(
            "{} of {} experts are used",
            experts.used, experts.count
        )));
    }
    if keys.size_or_zero("expert_shared_count")?.is_some() {
        return Err(keys.unsupported("shared experts"));
    }
    Ok(FeedForwardKind::Experts(experts))
}

#[cfg(test)]
mod tests;
