//! The type that each tensor of a Hugging Face folder is quantized to.

use crate::tensor_types::TensorType;
use serde::{Deserialize, Deserializer, de::Error as _};

/// The type that matrices are quantized to while they are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantize {
    /// The stored type.
    None,
    /// This type.
    To(TensorType),
}

/// The TypeScript type of what [`Quantize::from_name`] reads.
#[cfg(test)]
impl ts_rs::TS for Quantize {
    type WithoutGenerics = Quantize;
    type OptionInnerType = Quantize;

    fn name(_: &ts_rs::Config) -> String {
        "Quantize".to_owned()
    }

    fn inline(_: &ts_rs::Config) -> String {
        let types = TensorType::quantizable();
        let names = types.map(|ty| format!(" | \"{}\"", ty.lowercase_name()));
        format!("\"none\"{}", names.collect::<String>())
    }

    fn decl(config: &ts_rs::Config) -> String {
        format!("type Quantize = {};", Self::inline(config))
    }

    fn output_path() -> Option<std::path::PathBuf> {
        Some("types.ts".into())
    }
}

impl Default for Quantize {
    /// Q8_0: half the memory of 16-bit floats without a noticeable change of the output. Types with a larger
    /// error have to be requested.
    fn default() -> Self {
        Quantize::To(TensorType::Q8_0)
    }
}

impl Quantize {
    /// Parses `none` or the lower-case name of a quantizable type: `q4_0`, `q4_k`.
    pub fn from_name(name: &str) -> Option<Quantize> {
        if name == "none" {
            return Some(Quantize::None);
        }
        let ty = TensorType::quantizable().find(|ty| ty.lowercase_name() == name)?;
        Some(Quantize::To(ty))
    }

    /// The type for the tensor of this shape and GGUF name, chosen as llama.cpp does: vectors, norms, routers, biases,
    /// convolutions and learned positions stay f32; the output matrix, and embeddings tied to it, get at least six bits.
    pub(super) fn ty(
        self,
        name: &str,
        shape: &[u64],
        stored: TensorType,
        tied: bool,
    ) -> TensorType {
        let exact = [
            "ffn_gate_inp",
            "position_embd.",
            ".ssm_conv1d.",
            ".shortconv.conv.",
            ".bias",
        ];
        let is_exact = shape.len() == 1 || exact.iter().any(|part| name.contains(part));
        let ty = match self {
            _ if is_exact => return TensorType::F32,
            Quantize::None => return stored,
            Quantize::To(ty) => ty,
        };
        let is_output = name == "output.weight" || (tied && name == "token_embd.weight");
        let wants_more = is_output && ty.block_len() > 1 && ty != TensorType::Q8_0;
        let ty = if wants_more { TensorType::Q6_K } else { ty };
        let fits = |ty: &TensorType| shape[0].is_multiple_of(ty.block_len() as u64);
        let types = [ty, TensorType::Q8_0, TensorType::F16];
        types.into_iter().find(fits).unwrap_or(TensorType::F16)
    }
}

impl<'de> Deserialize<'de> for Quantize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Quantize::from_name(&name).ok_or_else(|| {
            let names: Vec<&str> = TensorType::quantizable()
                .map(TensorType::lowercase_name)
                .collect();
            D::Error::custom(format!(
                "quantize is none, {}, not {name}",
                names.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_names_and_row_lengths() {
        let ty = |quantize: &str, name: &str, shape: &[u64], tied: bool| {
            Quantize::from_name(quantize)
                .unwrap()
                .ty(name, shape, BF16, tied)
        };
        use TensorType::*;
        for (quantize, name, shape, tied, expected) in [
            ("none", "blk.0.attn_q.weight", &[64, 64][..], false, BF16),
            ("none", "blk.0.attn_norm.weight", &[64], false, F32),
            ("q4_0", "blk.0.ffn_gate_inp.weight", &[64, 8], false, F32),
            ("q4_0", "position_embd.weight", &[64, 8], false, F32),
            ("q4_0", "blk.0.attn_q.weight", &[64, 64], false, Q4_0),
            ("q4_0", "blk.0.attn_q.weight", &[40, 64], false, F16),
            ("q4_k", "blk.0.attn_q.weight", &[512, 64], false, Q4_K),
            ("q4_k", "blk.0.attn_q.weight", &[64, 64], false, Q8_0),
            ("q4_0", "output.weight", &[256, 64], false, Q6_K),
            ("q4_0", "token_embd.weight", &[256, 64], true, Q6_K),
            ("q4_0", "token_embd.weight", &[64, 64], true, Q8_0),
            ("q4_0", "token_embd.weight", &[256, 64], false, Q4_0),
            ("q8_0", "output.weight", &[256, 64], false, Q8_0),
            ("f16", "output.weight", &[256, 64], false, F16),
        ] {
            assert_eq!(
                ty(quantize, name, shape, tied),
                expected,
                "{quantize} {name}"
            );
        }
        assert_eq!(Quantize::from_name("Q4_0"), None);
    }
}
