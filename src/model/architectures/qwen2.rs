//! Qwen2 and Qwen2.5 (Yang et al. 2024, <https://arxiv.org/abs/2407.10671>): a Llama with biases of
//! queries, keys and values. The loader accepts these in every architecture.

use super::architecture::Architecture;
use crate::{Result, model::config::ConfigJson};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen2",
    model_types: &["qwen2"],
    read_json,
    ..Architecture::LLAMA_LIKE
};

/// Refuses the sliding window of the last layers that a `config.json` may turn on.
pub fn read_json(json: &mut ConfigJson) -> Result<()> {
    let key = "use_sliding_window";
    json.require(key, json.bool(key)? != Some(true))
}
