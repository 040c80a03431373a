//! The lower bound of the time of a decode step: reading weights and KV cache at the machine's memory
//! bandwidth.

use inpage::{model::Transformer, ops::step::PAGE_TOKENS, weights::Gguf};
use serde_json::{Value, json};

use crate::machine::round;

/// The lower bound of a decode step.
pub struct Floor {
    position: usize,
    bytes: f64,
    bytes_per_s: f64,
}

impl Floor {
    /// A step reads every weight once, one row of the embedding, and K and V of the `position` preceding
    /// tokens.
    pub fn of(gguf: &Gguf, model: &Transformer, position: usize, bytes_per_s: f64) -> Floor {
        let tied = gguf.tensor("output.weight").is_none();
        let weights =
            gguf.tensors
                .iter()
                .map(|tensor| match tensor.name == "token_embd.weight" && !tied {
                    true => tensor.row_bytes(),
                    false => tensor.size_bytes,
                });
        let config = model.config();
        let page_bytes = |layer| 4 * model.kv_format().page_words(config.kv_dim(layer));
        // Layers that use the keys and values of another read them, too.
        let all_bytes: usize = (0..config.layers.len()).map(page_bytes).sum();
        let kv = all_bytes * position / PAGE_TOKENS;
        Floor {
            bytes: (weights.sum::<u64>() + kv as u64) as f64,
            position,
            bytes_per_s,
        }
    }

    /// Rates of `tokens` steps that took `seconds`, and their share of the bound.
    pub fn compare(
        &self,
        model: &Transformer,
        tokens: usize,
        seconds: f64,
        dispatches: Option<u64>,
    ) -> Value {
        let ms = seconds * 1e3 / tokens as f64;
        let floor_ms = self.bytes / self.bytes_per_s * 1e3;
        let layers = model.config().layers.len() as f64;
        json!({
            "context_tokens": self.position,
            "tokens": tokens,
            "tokens_per_s": round(1e3 / ms),
            "ms_per_token": round(ms),
            "bytes_per_step": self.bytes,
            "floor_ms_per_token": round(floor_ms),
            "share_of_floor": round(floor_ms / ms),
            "dispatches_per_step": dispatches,
            "dispatches_per_layer": dispatches.map(|count| round(count as f64 / layers)),
        })
    }
}
