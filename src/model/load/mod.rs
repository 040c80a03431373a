//! What a load may choose, and its parts: the plan, the outline, the weights. `runtime::start` puts
//! them in order.

mod layout;
mod modules;
mod reader;
mod tensors;

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::{Deserialize, Deserializer, de::Error as _};

pub(super) use self::layout::{DeviceBytes, RowRepacker};
use self::{modules::Loader, tensors::check_tensors};
use super::{
    ModelConfig, Quantize, architectures, kv_reservation::KvReservation, layers::decoder::Decoder,
};
use crate::{
    Result,
    ops::kv_memory::KvFormat,
    tensor_types::TensorType,
    tuner::{Needs, Precision},
    weights::{ByteSource, BytesSource, Gguf, TensorInfo},
};

/// What a load may choose. As an object its members have camelCase names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoadOptions {
    /// Longest sequence to reserve KV memory for, in tokens; the model's own context, at most
    /// 4096, if `None`.
    #[serde(deserialize_with = "at_least_one")]
    pub context_tokens: Option<usize>,
    /// Format of the KV cache.
    pub kv_format: KvFormat,
    /// Tensor type that the matrices of a Hugging Face folder are converted to. Those of GGUF files
    /// are not converted.
    pub quantize: Quantize,
    /// Tokens of KV memory that all sequences share; 4096 if `None`, and never less than one
    /// sequence may need.
    #[serde(deserialize_with = "at_least_one")]
    pub kv_pool_tokens: Option<usize>,
    /// Arithmetic that products may use.
    pub precision: Precision,
}

impl LoadOptions {
    /// What the model that `gguf` describes, with matrices in `formats`, requires of its kernels.
    pub fn needs<'a>(self, gguf: &Gguf, formats: &'a [TensorType]) -> Needs<'a> {
        let belongs_to_experts = |tensor: &TensorInfo| tensor.name.ends_with("_exps.weight");
        Needs {
            formats,
            experts: gguf.tensors.iter().any(belongs_to_experts),
            kv_format: self.kv_format,
            precision: self.precision,
        }
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(value: D) -> Result<Option<usize>, D::Error> {
    match Option::deserialize(value)? {
        Some(0) => Err(D::Error::custom("a number of tokens is at least 1")),
        tokens => Ok(tokens),
    }
}

/// A model whose file was validated, and the memory that is reserved for it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The hyperparameters.
    pub(super) config: ModelConfig,
    /// Columns and rows of its matrices, by the file's names.
    pub(super) matrices: BTreeMap<String, [usize; 2]>,
    /// Its KV cache.
    pub(super) reservation: KvReservation,
    /// Largest part of a buffer that kernels see.
    pub(super) max_binding_bytes: u64,
}

/// Validates the file for a device whose kernels see `max_binding_bytes` of a buffer: every tensor is
/// present in the right shape, and the KV cache of a layer is small enough.
pub(crate) fn plan(gguf: &Gguf, options: LoadOptions, max_binding_bytes: u64) -> Result<Plan> {
    let config = architectures::read_config(gguf)?;
    check_tensors(gguf, &config, max_binding_bytes)?;
    let reservation = KvReservation::new(options, &config, max_binding_bytes)?;
    let matrices = gguf.tensors.iter().filter_map(|tensor| {
        let shape: [u64; 2] = tensor.shape[..].try_into().ok()?;
        Some((tensor.name.clone(), shape.map(|n| n as usize)))
    });
    Ok(Plan {
        matrices: matrices.collect(),
        config,
        reservation,
        max_binding_bytes,
    })
}

/// Streams the weights to a device, for kernels of the portable form.
pub(crate) async fn load_weights<S: ByteSource>(
    device: &Device,
    gguf: &Gguf,
    source: &S,
    plan: &Plan,
    mut progress: impl FnMut(u64, u64),
) -> Result<Decoder> {
    let total_bytes = gguf.tensors.iter().map(|tensor| tensor.size_bytes).sum();
    let mut progress = |bytes| progress(bytes, total_bytes);
    Loader::new(gguf, Some(source), device, plan, &mut progress)
        .decoder()
        .await
}

/// A model without its weights: enough to collect the kernels that it launches.
pub(crate) async fn outline(device: &Device, gguf: &Gguf, plan: &Plan) -> Result<Decoder> {
    let no_source = None::<&BytesSource<Vec<u8>>>;
    Loader::new(gguf, no_source, device, plan, &mut |_| ())
        .decoder()
        .await
}

/// The formats of a file's matrices, the most frequent first.
pub fn formats(gguf: &Gguf) -> Vec<TensorType> {
    let matrices = gguf.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
    let of_matrices: Vec<TensorType> = matrices.map(|tensor| tensor.ty).collect();
    let count = |format: &TensorType| of_matrices.iter().filter(|of| *of == format).count();
    let mut formats = TensorType::ALL.to_vec();
    formats.retain(|format| count(format) > 0);
    formats.sort_by_key(|format| std::cmp::Reverse(count(format)));
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let read = |json: &str| serde_json::from_str::<LoadOptions>(json);
        assert_eq!(read("{}").unwrap(), LoadOptions::default());
        let options = r#"{"contextTokens":7,"kvFormat":"q8_0","kvPoolTokens":9,"precision":"f32","quantize":"q4_k"}"#;
        let expected = LoadOptions {
            context_tokens: Some(7),
            kv_format: KvFormat::Q8_0,
            kv_pool_tokens: Some(9),
            precision: Precision::F32,
            quantize: Quantize::To(TensorType::Q4_K),
        };
        assert_eq!(read(options).unwrap(), expected);
        for (json, part) in [
            (r#"{"kvFormat":"q4_0"}"#, "q4_0"),
            (r#"{"contextTokens":0}"#, "at least 1"),
            (r#"{"kvPoolTokens":-1}"#, "-1"),
            (r#"{"context":1}"#, "context"),
            (r#"{"precision":"f64"}"#, "f64"),
            (r#"{"quantize":"q9"}"#, "q9"),
            (r#"{"quantize":"mxfp4"}"#, "mxfp4"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
