//! Qwen3.5: gated delta nets in three of four layers, attention with gated outputs in the others. Blocks that predict
//! further tokens are not run.

use super::architecture::Architecture;
use crate::{
    Error, Result,
    model::config::{Keys, LinearRecurrence, ModelConfig, QkNorm, Recurrence, Rule},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "qwen35",
    configure,
    ..Architecture::LLAMA_LIKE
};

pub(super) fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.qk_norm = QkNorm::Heads;
    config.has_output_gate = true;
    config.ffn_norm = "post_attention_norm";
    let recurrence = LinearRecurrence::read(keys, Rule::Delta)?;
    if recurrence.key_len != recurrence.value_len {
        return Err(keys.unsupported("keys and values of different lengths"));
    }
    config.recurrence = Some(Recurrence::Linear(recurrence));
    let name = keys.name("attention.recurrent_layers");
    let recurrent = keys.metadata().bools(&name)?;
    let interval = keys.size_or("full_attention_interval", 4)?;
    for (i, layer) in config.layers.iter_mut().enumerate() {
        layer.is_recurrent = match recurrent {
            None => !(i + 1).is_multiple_of(interval),
            Some(recurrent) => *recurrent
                .get(i)
                .ok_or_else(|| Error::InvalidModelFile(format!("{name} has too few entries")))?,
        };
    }
    let ignored = keys.size_or_zero("nextn_predict_layers")?.unwrap_or(0);
    if ignored >= config.layers.len() {
        return Err(keys.unsupported(&format!("{ignored} nextn_predict_layers")));
    }
    config.layers.truncate(config.layers.len() - ignored);
    config.ignored_blocks = ignored;
    Ok(())
}
