//! Describes a model and the GPU memory that it needs, from its header. Reads no tensor and requests no
//! device.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    architectures,
    config::{LayerRope, ModelConfig, Positions, Rope, Scaling},
    kv_reservation::KvReservation,
    load::{DeviceBytes, LAYER_TOKENS},
    load_options::LoadOptions,
    steps::scratch::scratch_bytes,
};
use crate::{
    ops::{
        kv_memory::{KvFormat, kv_format_name},
        step::PAGE_TOKENS,
    },
    weights::{Gguf, TensorInfo},
};

/// The description of a model in its header. Parts that this build does not support are `None`; [`super::refusal`] says why.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "InspectedModel"))]
#[serde(rename_all = "camelCase")]
pub struct ModelReport {
    /// `general.name`.
    pub name: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// Elements of all tensors.
    pub parameters: u64,
    /// Bytes of all tensors, in the types they have after loading.
    pub loaded_bytes: u64,
    /// Types of the tensors after loading, the one with the most bytes first. The matrices of a folder
    /// are converted to the type of `quantize`; all other tensors keep the type of their file.
    pub tensor_types: Vec<TensorTypeReport>,
    /// Its sizes, if the architecture is known.
    pub hyperparameters: Option<Hyperparameters>,
    /// GPU memory that it needs.
    pub memory: Option<MemoryReport>,
}

/// The tensors of one type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct TensorTypeReport {
    /// ggml's name of the type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Number of tensors.
    pub tensors: usize,
    /// Their elements.
    pub elements: u64,
    /// Their bytes in that type.
    pub bytes: u64,
}

/// The sizes of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct Hyperparameters {
    /// Longest sequence that the model supports, in tokens.
    pub context_tokens: usize,
    /// Layers.
    pub layers: usize,
    /// Layers with a recurrence, in place of attention or beside it.
    pub recurrent_layers: usize,
    /// Width of the residual stream.
    pub dim: usize,
    /// Width of the feed-forward layers; of one expert, where there are experts.
    pub ffn_dim: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// Rows of the embedding table.
    pub vocab: usize,
    /// The rotary position embedding; `None` where positions are learned vectors.
    pub rope: Option<RopeReport>,
    /// Layers with a sliding window, by its size.
    pub windows: Vec<WindowReport>,
    /// The mixture of experts, if it is one.
    pub experts: Option<ExpertsReport>,
}

/// A rotary position embedding.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct RopeReport {
    /// Base of the frequencies.
    pub base: f32,
    /// Base of layers that have frequencies of their own.
    pub local_base: Option<f32>,
    /// Elements of each head that are rotated.
    pub dims: usize,
    /// Layers without any rotation.
    pub unrotated_layers: usize,
    /// The scaling of frequencies for longer contexts.
    #[cfg_attr(
        test,
        ts(type = r#""none" | "linear" | "yarn" | "longrope" | "llama3""#)
    )]
    pub scaling: &'static str,
    /// The ratio of the context to that of the training, where the scaling says so.
    pub factor: Option<f32>,
    /// Context of the training, in tokens, where the scaling says so.
    pub original_tokens: Option<usize>,
}

/// Layers with a sliding window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct WindowReport {
    /// Tokens that a token attends to, including itself.
    pub tokens: usize,
    /// Number of layers.
    pub layers: usize,
}

/// A mixture of experts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ExpertsReport {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that a token uses.
    pub used: usize,
}

/// The GPU memory that a model needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct MemoryReport {
    /// Longest sequence that memory is reserved for, in tokens: never more than the model's own context.
    pub context_tokens: usize,
    /// Format of the KV cache.
    #[serde(with = "kv_format_name")]
    #[cfg_attr(test, ts(as = "crate::ops::kv_memory::typescript::KvFormat"))]
    pub kv_format: KvFormat,
    /// Tokens of KV cache that all sequences share.
    pub kv_pool_tokens: usize,
    /// Weights, in the kernels' layout.
    pub weight_bytes: u64,
    /// KV cache of all layers.
    pub kv_bytes: u64,
    /// States of sequences in recurrent layers.
    pub state_bytes: u64,
    /// Other memory of steps and samplers, approximately.
    pub scratch_bytes: u64,
    /// The sum.
    pub total_bytes: u64,
    /// The largest buffer that a kernel has to see as a whole.
    pub largest_buffer: BufferReport,
}

/// A buffer on the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct BufferReport {
    /// A tensor's name, `KV cache of a layer` or `states of a layer`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// `options` with KV cache for this many sequences of the longest context; unchanged for models that
/// this build does not support.
pub fn for_sequences(gguf: &Gguf, options: LoadOptions, sequences: usize) -> LoadOptions {
    let reserved = architectures::read_config(gguf)
        .and_then(|config| KvReservation::new(options, &config, u64::MAX));
    let context_tokens = match reserved {
        Ok(reservation) => reservation.context_tokens,
        Err(_) => return options,
    };
    // A page is written by one sequence.
    let tokens = context_tokens.next_multiple_of(PAGE_TOKENS);
    LoadOptions {
        kv_pool_tokens: Some(tokens.saturating_mul(sequences)),
        ..options
    }
}

/// The description in the header, and the memory that the model needs when it is loaded with `options`.
pub fn inspect(gguf: &Gguf, options: LoadOptions) -> ModelReport {
    // `refusal` reports a text of another type.
    let text = |key: &str| gguf.metadata.str(key).ok().flatten().map(str::to_owned);
    let config = architectures::read_config(gguf).ok();
    ModelReport {
        name: text("general.name"),
        architecture: text("general.architecture"),
        parameters: gguf.tensors.iter().map(|it| it.element_count()).sum(),
        loaded_bytes: gguf.tensors.iter().map(|it| it.size_bytes).sum(),
        tensor_types: tensor_types(gguf),
        hyperparameters: config.as_ref().map(|it| hyperparameters(gguf, it)),
        memory: config.and_then(|config| {
            let reservation = KvReservation::new(options, &config, u64::MAX).ok()?;
            Some(memory(gguf, &config, &reservation))
        }),
    }
}

/// The tensors by their types.
pub(super) fn tensor_types(gguf: &Gguf) -> Vec<TensorTypeReport> {
    let mut types = BTreeMap::new();
    for tensor in &gguf.tensors {
        let ty = tensor.ty.name();
        let report = types.entry(ty).or_insert(TensorTypeReport {
            ty,
            tensors: 0,
            elements: 0,
            bytes: 0,
        });
        report.tensors += 1;
        report.elements += tensor.element_count();
        report.bytes += tensor.size_bytes;
    }
    let mut types: Vec<TensorTypeReport> = types.into_values().collect();
    types.sort_by_key(|report| std::cmp::Reverse(report.bytes));
    types
}

fn hyperparameters(gguf: &Gguf, config: &ModelConfig) -> Hyperparameters {
    let mut windows = BTreeMap::new();
    for window in config.layers.iter().filter_map(|layer| layer.window) {
        *windows.entry(window.tokens()).or_insert(0) += 1;
    }
    Hyperparameters {
        context_tokens: config.context_tokens,
        layers: config.layers.len(),
        recurrent_layers: config.layers.iter().filter(|it| it.mixing.recurs()).count(),
        dim: config.dim,
        ffn_dim: config.ffn_dim,
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        vocab: config.vocab,
        rope: match &config.positions {
            Positions::Rotary(rope) => Some(rope_report(gguf, config, rope)),
            Positions::Learned => None,
        },
        windows: windows
            .into_iter()
            .map(|(tokens, layers)| WindowReport { tokens, layers })
            .collect(),
        experts: config.feed_forward.experts().map(|experts| ExpertsReport {
            count: experts.count,
            used: experts.used,
        }),
    }
}

fn rope_report(gguf: &Gguf, config: &ModelConfig, rope: &Rope) -> RopeReport {
    let (scaling, factor, original_tokens) = match rope.scaling {
        // The scaling of Llama 3 is a tensor of factors.
        // In a model with head lengths per layer the factors only leave pairs unrotated.
        Scaling::None
            if gguf.tensor("rope_freqs.weight").is_some() && rope.local_dims == rope.dims =>
        {
            ("llama3", None, None)
        }
        Scaling::None => ("none", None, None),
        Scaling::Linear { factor } => ("linear", Some(factor), None),
        Scaling::Yarn {
            factor,
            original_tokens,
            ..
        } => ("yarn", Some(factor), Some(original_tokens)),
        Scaling::Long {
            original_tokens, ..
        } => ("longrope", None, Some(original_tokens)),
    };
    let layers = config.layers.iter();
    RopeReport {
        base: rope.base,
        local_base: rope.local_base,
        dims: rope.dims,
        unrotated_layers: layers.filter(|it| it.rope == LayerRope::None).count(),
        scaling,
        factor,
        original_tokens,
    }
}

fn memory(gguf: &Gguf, config: &ModelConfig, reservation: &KvReservation) -> MemoryReport {
    let tensors = on_device(gguf).filter(|it| !config.ignores(&it.name));
    let weight_bytes = tensors.map(|it| DeviceBytes::of(it).sum()).sum();
    let kv_bytes = reservation.bytes();
    let scratch_bytes = scratch_bytes(config, reservation);
    let kv = BufferReport {
        name: "KV cache of a layer".into(),
        bytes: reservation.layer_bytes(),
    };
    let states = BufferReport {
        name: "states of a layer".into(),
        bytes: reservation.states.layer_bytes(),
    };
    let state_bytes = reservation.states.bytes();
    let largest = weight_buffers(gguf).chain([states]);
    MemoryReport {
        context_tokens: reservation.context_tokens,
        kv_format: reservation.format,
        kv_pool_tokens: reservation.pages * PAGE_TOKENS,
        weight_bytes,
        kv_bytes,
        state_bytes,
        scratch_bytes,
        total_bytes: weight_bytes + kv_bytes + state_bytes + scratch_bytes,
        largest_buffer: largest.fold(kv, |largest, buffer| match buffer.bytes > largest.bytes {
            true => buffer,
            false => largest,
        }),
    }
}

/// The largest buffer of every tensor. Tensors are joined to one matrix only where it fits.
fn weight_buffers(gguf: &Gguf) -> impl Iterator<Item = BufferReport> {
    on_device(gguf).map(|tensor| BufferReport {
        name: tensor.name.clone(),
        bytes: DeviceBytes::of(tensor).largest(),
    })
}

/// Bytes of a table that stays on the host, in the type of the file.
pub(super) fn host_bytes(gguf: &Gguf) -> u64 {
    gguf.tensor(LAYER_TOKENS).map_or(0, |it| it.size_bytes)
}

/// The tensors but for a table that stays on the host.
fn on_device(gguf: &Gguf) -> impl Iterator<Item = &TensorInfo> {
    gguf.tensors
        .iter()
        .filter(|tensor| tensor.name != LAYER_TOKENS)
}
