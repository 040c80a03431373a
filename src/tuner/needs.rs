//! The requirements of a model for its kernels.

use serde::Deserialize;

use crate::{ops::kv_memory::KvFormat, tensor_types::TensorType};

/// The features that the kernels of a model have to support.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// Tensor types of its matrices; at least one, the most frequent first.
    pub types: &'a [TensorType],
    /// Whether some matrices belong to experts.
    pub experts: bool,
    /// Whether tokens attend to each other, as in encoders. No causal attention is computed then.
    pub whole_attention: bool,
    /// Format of the KV cache.
    pub kv_format: KvFormat,
    /// Arithmetic that products may use.
    pub precision: Precision,
}

/// Arithmetic that products may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32, or f16 or bytes where that is clearly faster on the device at hand.
    #[default]
    Auto,
    /// f32 throughout.
    F32,
}
