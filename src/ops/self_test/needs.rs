//! What a model asks of kernels. Knows no model.

use serde::Deserialize;

use crate::ops::{kv_memory::KvFormat, matrix::Format};

/// What the kernels of a model have to serve.
#[derive(Debug, Clone, Copy)]
pub struct Needs<'a> {
    /// Of its matrices; at least one, the most frequent first.
    pub formats: &'a [Format],
    /// Some of these are of experts.
    pub experts: bool,
    /// Of its keys and values.
    pub kv_format: KvFormat,
    /// What products may be computed in.
    pub precision: Precision,
}

/// What products may be computed in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32, or f16 or bytes where that is clearly quicker on the device at hand.
    #[default]
    Auto,
    /// f32 throughout.
    F32,
}
