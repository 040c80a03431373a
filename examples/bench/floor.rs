//! The lower bound of the time of a decode step: reading weights and KV cache, and reading and writing states, at the
//! machine's memory bandwidth.

use inpage::{model::Transformer, ops::step::PAGE_TOKENS, weights::Gguf};
use serde_json::{Value, json};

use crate::machine::round;

/// The lower bound of a decode step.
pub struct Floor {
    position: usize,
    weight_bytes: u64,
    kv_bytes: usize,
    state_bytes: usize,
    bytes_per_s: f64,
}

impl Floor {
    /// A step reads every weight once, one row of the tables of tokens, K and V of the `position` preceding tokens or of those
    /// in a layer's window, and reads and writes the states of a sequence.
    pub fn of(gguf: &Gguf, model: &Transformer, position: usize, bytes_per_s: f64) -> Floor {
        let tied = gguf.tensor("output.weight").is_none();
        let weights = gguf.tensors.iter().map(|tensor| match &*tensor.name {
            "token_embd.weight" if !tied => tensor.row_bytes(),
            "per_layer_token_embd.weight" => tensor.row_bytes(),
            _ => tensor.size_bytes,
        });
        let config = model.config();
        // Layers that use the keys and values of another read them, too.
        let kv = config.layers.iter().enumerate().map(|(i, layer)| {
            let page_bytes = match layer.mixing.attends() {
                true => 4 * model.kv_format().page_words(config.kv_dim(i)),
                false => 0,
            };
            let window = layer.window.map_or(position, |it| it.tokens());
            page_bytes * window.min(position) / PAGE_TOKENS
        });
        let recurrent = config.layers.iter().filter(|layer| layer.mixing.recurs());
        let words = config.recurrence.map_or(0, |it| it.state_len(config.dim));
        Floor {
            weight_bytes: weights.sum(),
            kv_bytes: kv.sum(),
            state_bytes: 2 * 4 * words * recurrent.count(),
            position,
            bytes_per_s,
        }
    }

    fn bytes(&self) -> f64 {
        self.weight_bytes as f64 + (self.kv_bytes + self.state_bytes) as f64
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
        let floor_ms = self.bytes() / self.bytes_per_s * 1e3;
        let layers = model.config().layers.len() as f64;
        json!({
            "context_tokens": self.position,
            "tokens": tokens,
            "tokens_per_s": round(1e3 / ms),
            "ms_per_token": round(ms),
            "bytes_per_step": self.bytes(),
            "weight_bytes": self.weight_bytes,
            "kv_bytes": self.kv_bytes,
            "state_bytes": self.state_bytes,
            "floor_ms_per_token": round(floor_ms),
            "share_of_floor": round(floor_ms / ms),
            "dispatches_per_step": dispatches,
            "dispatches_per_layer": dispatches.map(|count| round(count as f64 / layers)),
        })
    }
}
