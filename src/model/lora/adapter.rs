//! An adapter's description: the pairs of matrices in its files, and the tensors of the model that they are
//! for.

use std::collections::BTreeMap;

use super::row_order::RowOrder;
use crate::{
    Error, Result,
    model::{
        architectures,
        config::{ModelConfig, Recurrence, RopePairs, Rule},
        hugging_face::gguf_name,
    },
    weights::{JoinedSource, TensorInfo},
};

/// Limit of the rank of one tensor's adapter; real ones have at most 256.
const MAX_RANK: u64 = 4096;

/// The description of an adapter, and the source of its tensors.
#[derive(Debug)]
pub struct Adapter<S> {
    /// Its name in messages.
    pub(super) file: String,
    pub(super) format: AdapterFormat,
    /// The pairs of matrices, one for each tensor that the adapter changes.
    pub(super) pairs: Vec<Pair>,
    /// The source that the tensors' offsets refer to.
    pub(super) source: JoinedSource<S>,
}

/// The format of an adapter, which determines its names and its order of rows.
#[derive(Debug)]
pub(super) enum AdapterFormat {
    /// A GGUF file of llama.cpp's converter, with the names of a model of this architecture.
    Gguf { architecture: String },
    /// A folder of PEFT's, with the names of the Hugging Face checkpoint.
    Peft,
}

/// The two matrices for one tensor.
#[derive(Debug)]
pub(super) struct Pair {
    /// The tensor's name, in the names of the format.
    pub(super) target: String,
    /// A, `[cols, rank]` in GGUF order.
    pub(super) a: TensorInfo,
    /// B, `[rank, rows]` in GGUF order.
    pub(super) b: TensorInfo,
    /// Factor of their product, from the file.
    pub(super) scale: f32,
}

impl Pair {
    pub(super) fn cols(&self) -> u64 {
        self.a.shape[0]
    }

    pub(super) fn rank(&self) -> u64 {
        self.a.shape[1]
    }

    pub(super) fn rows(&self) -> u64 {
        self.b.shape[1]
    }
}

/// One of the two matrices of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Half {
    A,
    B,
}

impl<S> Adapter<S> {
    /// The same adapter under another name in messages. The files of all folders have the same name.
    pub fn called(self, name: impl Into<String>) -> Adapter<S> {
        Adapter {
            file: name.into(),
            ..self
        }
    }

    /// The GGUF name of a pair's tensor in a model.
    pub(super) fn target_name(&self, pair: &Pair, config: &ModelConfig) -> Result<String> {
        match &self.format {
            AdapterFormat::Gguf { architecture } if *architecture != config.architecture => {
                Err(Error::UnsupportedModel(format!(
                    "{}: an adapter of {architecture}, but the model is of {}",
                    self.file, config.architecture
                )))
            }
            AdapterFormat::Gguf { .. } => Ok(pair.target.clone()),
            AdapterFormat::Peft
                if architectures::find(&config.architecture)?
                    .row_factors
                    .is_some() =>
            {
                Err(Error::UnsupportedModel(format!(
                    "{}: an adapter in the format of PEFT for {}, whose matrices have factors: llama.cpp's converter makes a \
                     GGUF file of it",
                    self.file, config.architecture
                )))
            }
            AdapterFormat::Peft => gguf_name(&config.architecture, &pair.target)?
                .ok_or_else(|| self.not_adaptable(&pair.target)),
        }
    }

    /// The reordering of the rows of a tensor's B to the order of the model's rows.
    pub(super) fn row_order(&self, config: &ModelConfig) -> Result<RowOrder> {
        let Some(rope) = config.rope() else {
            return Ok(RowOrder::Kept);
        };
        let architecture = architectures::find(&config.architecture)?;
        let pairs = match &self.format {
            AdapterFormat::Gguf { .. } => architecture.gguf_pairs,
            AdapterFormat::Peft => architecture.checkpoint_pairs,
        };
        Ok(match (pairs, rope.pairs) {
            (RopePairs::Halves, RopePairs::Adjacent) => RowOrder::ToAdjacent,
            (RopePairs::Adjacent, RopePairs::Halves) => RowOrder::ToHalves,
            _ => RowOrder::Kept,
        })
    }

    /// Refuses an adapter whose heads of values are in another order than those of the model: converters reorder them where
    /// several share a key.
    pub(super) fn check_recurrent_heads(&self, tensor: &str, config: &ModelConfig) -> Result<()> {
        let Some(Recurrence::Linear(it)) = config.recurrence else {
            return Ok(());
        };
        let is_reordered = it.rule == Rule::Delta && !it.joins_inputs && it.heads != it.key_heads;
        let is_tiled = matches!(self.format, AdapterFormat::Gguf { .. });
        if !is_reordered || is_tiled == it.is_tiled {
            return Ok(());
        }
        let (own, model) = match is_tiled {
            true => ("a GGUF file", "folder"),
            false => ("a folder", "GGUF file"),
        };
        Err(Error::UnsupportedModel(format!(
            "{}: an adapter of the tensor {} in {own}, whose heads are in another order than those of the model's {model}",
            self.file,
            shown(tensor)
        )))
    }

    /// The error for a tensor that cannot be adapted.
    pub(super) fn not_adaptable(&self, tensor: &str) -> Error {
        Error::UnsupportedModel(format!(
            "{}: an adapter of the tensor {}, which cannot be adapted",
            self.file,
            shown(tensor)
        ))
    }
}

/// Joins A and B of each tensor. `half` returns the model's tensor that a tensor is for, `scale` the factor
/// for a tensor and a rank.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming `file` and the tensor.
pub(super) fn pairs(
    file: &str,
    tensors: Vec<TensorInfo>,
    half: impl Fn(&str) -> Option<(String, Half)>,
    scale: impl Fn(&str, u64) -> Result<f32>,
) -> Result<Vec<Pair>> {
    let invalid = |what: String| Error::InvalidModelFile(format!("{file}: {what}"));
    let mut halves: BTreeMap<String, [Option<TensorInfo>; 2]> = BTreeMap::new();
    for tensor in tensors {
        let name = shown(&tensor.name);
        let (target, half) = half(&tensor.name).ok_or_else(|| {
            Error::UnsupportedModel(format!("{file}: an adapter with a tensor {name}"))
        })?;
        if tensor.shape.len() != 2 {
            return Err(Error::UnsupportedModel(format!(
                "{file}: an adapter whose tensor {name} is no matrix"
            )));
        }
        let slot = &mut halves.entry(target).or_default()[half as usize];
        if slot.replace(tensor).is_some() {
            return Err(invalid(format!("a second tensor such as {name}")));
        }
    }
    if halves.is_empty() {
        return Err(invalid("an adapter without tensors".into()));
    }
    let pairs = halves.into_iter().map(|(target, halves)| {
        let name = shown(&target);
        let [Some(a), Some(b)] = halves else {
            return Err(invalid(format!("only one of A and B of {name}")));
        };
        if a.shape[1] != b.shape[0] {
            return Err(invalid(format!(
                "A and B of {name} have ranks {} and {}",
                a.shape[1], b.shape[0]
            )));
        }
        if a.shape[1] > MAX_RANK {
            return Err(Error::UnsupportedModel(format!(
                "{file}: an adapter of rank {} for {name}; the limit is {MAX_RANK}",
                a.shape[1]
            )));
        }
        let scale = scale(&target, a.shape[1])?;
        if !scale.is_finite() {
            return Err(invalid(format!("{name} is scaled by {scale}")));
        }
        Ok(Pair {
            target,
            a,
            b,
            scale,
        })
    });
    pairs.collect()
}

/// A name from a file as messages show it: quoted and cut, as a hostile file can choose it.
pub(super) fn shown(name: &str) -> String {
    let cut: String = name.chars().take(120).collect();
    format!("{cut:?}")
}
