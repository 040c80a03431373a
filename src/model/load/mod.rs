//! From a GGUF file to a model that runs: what a load may choose, and its order.

mod layout;
mod modules;
mod reader;
mod tensors;

use std::collections::BTreeMap;

use burn::tensor::Device;
use serde::{Deserialize, Deserializer, de::Error as _};

pub(super) use self::layout::{DeviceBytes, Layout, format_of};
use self::{modules::Loader, tensors::check_tensors};
use super::{
    Compute, ModelConfig, Quantize, Transformer, architectures, kv_reservation::KvReservation,
    layers::decoder::Decoder,
};
use crate::{
    Result,
    ops::{
        kv_memory::KvFormat,
        matrix::Format,
        self_test::{Needs, Precision},
    },
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
    /// How keys and values are kept.
    pub kv_format: KvFormat,
    /// What the matrices of a Hugging Face folder become; those of GGUF files stay what they are.
    pub quantize: Quantize,
    /// Tokens of KV memory that all sequences share; 4096 if `None`, and never less than one
    /// sequence may need.
    #[serde(deserialize_with = "at_least_one")]
    pub kv_pool_tokens: Option<usize>,
    /// What products may be computed in, where the kernels are chosen while the model loads.
    pub precision: Precision,
}

impl LoadOptions {
    /// What kernels have to serve for the model `gguf` describes, whose matrices have these `formats`.
    pub fn needs<'a>(self, gguf: &Gguf, formats: &'a [Format]) -> Needs<'a> {
        let is_of_experts = |tensor: &TensorInfo| tensor.name.ends_with("_exps.weight");
        Needs {
            formats,
            experts: gguf.tensors.iter().any(is_of_experts),
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

/// A model that is checked, and the memory that it may take.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The hyperparameters.
    pub(super) config: ModelConfig,
    /// Columns and rows of its matrices, by the file's names.
    pub(super) matrices: BTreeMap<String, [usize; 2]>,
    /// Its keys and values.
    pub(super) reservation: KvReservation,
    /// Largest part of a buffer that kernels see.
    pub(super) max_binding_bytes: u64,
}

/// Loads the model that `gguf` describes from `source` onto `compute`. `progress` is told the
/// number of tensor bytes read so far and in all.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`], [`crate::Error::InvalidModelFile`] and, if a layer's KV
/// memory exceeds what a kernel can see, [`crate::Error::OutOfMemory`] before any tensor is read;
/// [`crate::Error::Read`] from `source`; [`crate::Error::OutOfMemory`] if the device cannot hold the
/// model.
pub async fn load<S: ByteSource>(
    compute: Compute,
    gguf: &Gguf,
    source: &S,
    options: LoadOptions,
    progress: impl FnMut(u64, u64),
) -> Result<Transformer> {
    let plan = plan(gguf, options, compute.max_binding_bytes())?;
    let mut decoder = weights(compute.device(), gguf, source, &plan, progress).await?;
    decoder.set_variant(compute.variant());
    compute.sync().await?;
    Ok(Transformer::new(compute, decoder, plan))
}

/// Checks that the file's tensors are all there, in the right shapes, and with the KV memory small
/// enough for kernels that see `max_binding_bytes`.
pub(super) fn plan(gguf: &Gguf, options: LoadOptions, max_binding_bytes: u64) -> Result<Plan> {
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
pub(super) async fn weights<S: ByteSource>(
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

/// The form of a model without its weights: enough to tell which kernels it launches.
pub(super) async fn outline(device: &Device, gguf: &Gguf, plan: &Plan) -> Result<Decoder> {
    let no_source = None::<&BytesSource<Vec<u8>>>;
    Loader::new(gguf, no_source, device, plan, &mut |_| ())
        .decoder()
        .await
}

/// The formats of a file's matrices, the most frequent first.
pub fn formats(gguf: &Gguf) -> Vec<Format> {
    let matrices = gguf.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
    let of_matrices: Vec<Format> = matrices.map(|tensor| format_of(tensor.ty)).collect();
    let count = |format: &Format| of_matrices.iter().filter(|of| *of == format).count();
    let mut formats = Format::ALL.to_vec();
    formats.retain(|format| count(format) > 0);
    formats.sort_by_key(|format| std::cmp::Reverse(count(format)));
    formats
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::TensorType;

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
