//! LFM2 (Liquid AI 2025, <https://arxiv.org/abs/2511.23404>): short convolutions between gates in place of attention in
//! most layers.

use super::{architecture::Architecture, shared::recurrent_without_kv_heads};
use crate::{
    Result,
    model::config::{Keys, ModelConfig, QkNorm, Recurrence, recurrence::taps},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "lfm2",
    configure,
    ..Architecture::LLAMA_LIKE
};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    config.output_norm_name = "token_embd_norm";
    config.recurrence = Some(Recurrence::ShortConv {
        taps: taps(keys, "shortconv.l_cache")?,
    });
    recurrent_without_kv_heads(keys, config)
}
