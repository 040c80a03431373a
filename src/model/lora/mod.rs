//! Low-rank adapters (Hu et al. 2021, <https://arxiv.org/abs/2106.09685>): matrices that are added to
//! those of a model while it computes, `W x + scale * B (A x)`. The model's own stay as they are.

mod adapted;
mod gguf;
mod low_rank;
mod peft;
mod row_order;
mod targets;

pub(super) use adapted::{Adapted, Base, adapted};
pub use low_rank::LowRank;

use std::collections::BTreeMap;

use self::row_order::RowOrder;
use super::{config::ModelConfig, hugging_face::gguf_name};
use crate::{
    Error, Result,
    weights::{ByteSource, JoinedSource, ModelFiles, TensorInfo},
};

/// Largest rank of one tensor's adapter; real ones have 256 at most.
const MAX_RANK: u64 = 4096;

/// An adapter's description, and where its tensors are: llama.cpp's GGUF form or a folder of PEFT's.
#[derive(Debug)]
pub struct Adapter<S> {
    /// What messages call it.
    file: String,
    form: Form,
    /// One for each tensor that it adapts.
    pairs: Vec<Pair>,
    /// Where the tensors' offsets count.
    source: JoinedSource<S>,
}

/// Whose names and order of rows an adapter has.
#[derive(Debug)]
enum Form {
    /// Those of a GGUF file of this architecture.
    Gguf { architecture: String },
    /// Those of the Hugging Face checkpoint.
    Peft,
}

/// The two matrices for one tensor.
#[derive(Debug)]
struct Pair {
    /// The tensor's name, in the names of the form.
    target: String,
    /// A, `[cols, rank]` in GGUF order.
    a: TensorInfo,
    /// B, `[rank, rows]` in GGUF order.
    b: TensorInfo,
    /// What the file has their product multiplied by.
    scale: f32,
}

impl Pair {
    fn cols(&self) -> u64 {
        self.a.shape[0]
    }

    fn rank(&self) -> u64 {
        self.a.shape[1]
    }

    fn rows(&self) -> u64 {
        self.b.shape[1]
    }
}

/// Which of the two a tensor is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Half {
    A,
    B,
}

impl<S: ByteSource> Adapter<S> {
    /// Reads what the files say of the adapter; no tensor's data. Whether it fits a model shows when
    /// it is set ([`Transformer::set_adapters`](super::Transformer::set_adapters)).
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the file and what is wrong
    /// with it; what the files fail with.
    pub async fn open<F: ModelFiles<Source = S>>(files: &F) -> Result<Adapter<S>> {
        match files.gguf_name() {
            Some(name) => gguf::open(files, &name).await,
            None => peft::open(files).await,
        }
    }

    /// The same, whom messages call so: folders' files have all the same name.
    pub fn called(self, name: impl Into<String>) -> Adapter<S> {
        Adapter {
            file: name.into(),
            ..self
        }
    }

    /// GGUF's name of a pair's tensor in a model.
    fn target_name(&self, pair: &Pair, config: &ModelConfig) -> Result<String> {
        match &self.form {
            Form::Gguf { architecture } if *architecture != config.architecture => {
                Err(Error::UnsupportedModel(format!(
                    "{}: an adapter of {architecture}, and the model is of {}",
                    self.file, config.architecture
                )))
            }
            Form::Gguf { .. } => Ok(pair.target.clone()),
            Form::Peft => gguf_name(&config.architecture, &pair.target)?
                .ok_or_else(|| self.not_adaptable(&pair.target)),
        }
    }

    /// What becomes of the rows of a tensor's B, so that they are in the model's order.
    fn row_order(&self, config: &ModelConfig) -> RowOrder {
        let Some(rope) = config.rope() else {
            return RowOrder::Kept;
        };
        let in_halves = match &self.form {
            Form::Gguf { .. } => rope.gguf_neox,
            Form::Peft => true,
        };
        match (in_halves, rope.neox) {
            (true, false) => RowOrder::ToNeighbours,
            (false, true) => RowOrder::ToHalves,
            _ => RowOrder::Kept,
        }
    }

    fn not_adaptable(&self, tensor: &str) -> Error {
        Error::UnsupportedModel(format!(
            "{}: an adapter of the tensor {}, which cannot be adapted",
            self.file,
            shown(tensor)
        ))
    }
}

/// Joins A and B of each tensor; `half` says which tensor of the model a tensor is for.
fn pairs(
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
        let place = &mut halves.entry(target).or_default()[half as usize];
        if place.replace(tensor).is_some() {
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

/// A name out of a file, cut: a hostile file chooses it.
fn shown(name: &str) -> String {
    let cut: String = name.chars().take(120).collect();
    format!("{cut:?}")
}

#[cfg(test)]
mod tests;
