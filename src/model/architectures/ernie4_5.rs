//! ERNIE 4.5 (Baidu 2025), dense: a Llama whose checkpoints rotate adjacent pairs, as its GGUF files do.

use super::architecture::Architecture;
use crate::model::config::RopePairs;

pub const ARCHITECTURE: Architecture = Architecture {
    name: "ernie4_5",
    model_types: &["ernie4_5"],
    gguf_pairs: RopePairs::Adjacent,
    checkpoint_pairs: RopePairs::Adjacent,
    ..Architecture::LLAMA_LIKE
};
