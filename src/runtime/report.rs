//! The report of a load and its times, for `engine.info()`.

use serde::Serialize;

use super::{DraftModelReport, LoraReport, ProjectorReport};
use crate::{
    api::ToolPrompts,
    device::DeviceReport,
    ops::kv_memory::{KvFormat, kv_format_name},
};

/// The result of `engine.info()`. Once a model is loaded, it also has the members of the load report.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct EngineInfo<'a> {
    /// The version of this build.
    pub version: &'static str,
    /// The model's id in requests.
    pub model: &'a str,
    /// Candidates that are queued or running.
    pub active_generations: usize,
    /// The loaded model.
    #[serde(flatten)]
    // `ts-rs` cannot flatten an option: `www/src/exchange/engine_info.ts` joins the two types.
    #[cfg_attr(test, ts(skip))]
    pub report: Option<&'a LoadReport>,
}

/// A loaded model and its device.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LoadReport {
    /// The device on which it computes.
    #[serde(flatten)]
    pub device: DeviceReport,
    /// The reason why it is not a GPU, where the device was chosen automatically and is not one.
    pub device_reason: Option<String>,
    /// The form of the kernels that was validated on the device.
    pub variant: String,
    /// `general.architecture`.
    pub architecture: String,
    /// Layers.
    pub layers: usize,
    /// Size of the files with tensors as they are loaded; of GGUF files including their headers.
    pub file_bytes: u64,
    /// Longest sequence, in tokens.
    pub context_tokens: usize,
    /// Format of the KV cache.
    #[serde(with = "kv_format_name")]
    #[cfg_attr(test, ts(as = "crate::ops::kv_memory::typescript::KvFormat"))]
    pub kv_format: KvFormat,
    /// Tokens of KV cache that all sequences share.
    pub kv_pool_tokens: usize,
    /// Size of the KV cache of all layers.
    pub kv_bytes: u64,
    /// Length of a logits row.
    pub vocab_size: usize,
    /// Dispatches of one greedy decode step.
    pub decode_dispatches: usize,
    /// The projector, which makes rows of images; `None`: the model takes text only.
    pub projector: Option<ProjectorReport>,
    /// The smaller model that guesses tokens; `None`: there is none.
    pub draft_model: Option<DraftModelReport>,
    /// The way in which tools get into prompts; `None`: the model has no chat template.
    pub tools: Option<ToolPrompts>,
    /// Low-rank adapters in use.
    pub lora: Vec<LoraReport>,
    /// The times of the parts of the load.
    pub load_ms: LoadTimes,
}

/// The times of the parts of a load, in milliseconds. On the reference device the parts after
/// `device` are 0: it has no clock.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LoadTimes {
    /// The time in a page from the worker's start until its script and the wasm module ran and the source
    /// was open.
    pub worker: f64,
    /// Reading the headers, and the tokenizer's tables.
    pub header: f64,
    /// Requesting the device.
    pub device: f64,
    /// Compiling and validating the kernels; concurrent with `weights`.
    pub kernels: f64,
    /// Reading the weights and uploading them to the device.
    pub weights: f64,
    /// Recording the steps.
    pub recording: f64,
}
