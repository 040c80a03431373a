//! The options of a load.

use serde::{Deserialize, Deserializer, de::Error as _};

use super::{architectures, hugging_face::Quantize};
use crate::{
    ops::kv_memory::{KvFormat, kv_format_name},
    tensor_types::TensorType,
    tuner::{Needs, Precision},
    weights::{Gguf, TensorInfo},
};

/// Options of a load. In JavaScript the members have camelCase names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LoadOptions {
    /// Longest sequence, in tokens; if omitted, the model's own context, at most 4096.
    #[serde(deserialize_with = "at_least_one")]
    pub context_tokens: Option<usize>,
    /// Format of the KV cache: `f32` is exact, `f16` (the default) takes half the memory, `q8_0` little
    /// more than a quarter and needs heads of a multiple of 32 elements.
    #[serde(with = "kv_format_name")]
    #[cfg_attr(
        test,
        ts(optional, as = "Option<crate::ops::kv_memory::typescript::KvFormat>")
    )]
    pub kv_format: KvFormat,
    /// Tensor type that the matrices of a Hugging Face folder are converted to while they are loaded;
    /// those of GGUF files are not converted. `q8_0` (the default) takes about half of 16-bit floats
    /// and does not change the answers noticeably; `q4_0` and `q4_k` take about a quarter and cost some
    /// quality; `none` keeps the stored type. Rows that do not fit the blocks of a type become `q8_0`
    /// or `f16`; norms, biases and the routers of experts stay exact.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub quantize: Quantize,
    /// Tokens of KV cache that all sequences share, cached prompts included; 4096 if omitted, and never
    /// less than one sequence may need.
    #[serde(deserialize_with = "at_least_one")]
    pub kv_pool_tokens: Option<usize>,
    /// The maximum number of bytes of memory that the model may need. A model that needs more is refused before its weights are
    /// read, and the error says what would fit.
    pub memory_budget_bytes: Option<u64>,
    /// Arithmetic that products may use: `f32`, or with `auto` (the default) f16 or bytes where that is
    /// measured to be clearly faster. `engine.info().variant` reports the choice.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub precision: Precision,
    /// Whether prompts may hold rows in place of embeddings: there is a projector.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub takes_embeddings: bool,
}

impl LoadOptions {
    /// Takes memory for something beside the model out of the budget, if there is one.
    pub fn reserve(&mut self, bytes: u64) {
        let budget = &mut self.memory_budget_bytes;
        *budget = budget.map(|budget| budget.saturating_sub(bytes));
    }

    /// The requirements of the model that `gguf` describes, with matrices in `types`, for its kernels.
    pub fn needs<'a>(self, gguf: &Gguf, types: &'a [TensorType]) -> Needs<'a> {
        let belongs_to_experts = |tensor: &TensorInfo| tensor.name.ends_with("_exps.weight");
        Needs {
            types,
            experts: gguf.tensors.iter().any(belongs_to_experts),
            // A file without a valid configuration is refused before its kernels run.
            whole_attention: architectures::read_config(gguf).is_ok_and(|it| !it.is_causal),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let read = |json: &str| serde_json::from_str::<LoadOptions>(json);
        assert_eq!(read("{}").unwrap(), LoadOptions::default());
        let options = r#"{"contextTokens":7,"kvFormat":"q8_0","kvPoolTokens":9,"memoryBudgetBytes":10,"precision":"f32","quantize":"q4_k"}"#;
        let expected = LoadOptions {
            context_tokens: Some(7),
            kv_format: KvFormat::Q8_0,
            kv_pool_tokens: Some(9),
            memory_budget_bytes: Some(10),
            precision: Precision::F32,
            quantize: Quantize::To(TensorType::Q4_K),
            takes_embeddings: false,
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
