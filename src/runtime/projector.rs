//! The file of a vision tower and its projector, which stands beside the file of a text model.

use std::fmt;

use serde::Serialize;

use crate::{
    Error, Result,
    model::TowerPlan,
    weights::{ByteSource, Gguf, ModelFiles},
};

/// A projector file whose header was read.
pub struct Projector<S> {
    /// Metadata and tensors.
    pub gguf: Gguf,
    /// Their bytes.
    pub source: S,
}

/// What makes rows of pictures, for `engine.info()`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ProjectorReport {
    /// The family of models, as `clip.projector_type` names it.
    pub kind: String,
    /// Layers of the tower.
    pub layers: usize,
    /// Size of the file.
    pub file_bytes: u64,
    /// What stands for a picture in a prompt.
    pub placeholder: &'static str,
}

impl<S: ByteSource> Projector<S> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] saying that it is about the projector; errors of the files.
    pub async fn open<F: ModelFiles<Source = S>>(files: &F) -> Result<Projector<S>> {
        let name = files.gguf_name();
        let name = name.ok_or_else(|| invalid("it is not a GGUF file"))?;
        let source = files.open(&name).await?;
        let source = source.ok_or_else(|| invalid("it does not exist"))?;
        let gguf = Gguf::read(&source).await.map_err(named)?;
        Ok(Projector { gguf, source })
    }

    /// Bytes of its tensors.
    pub(super) fn tensor_bytes(&self) -> u64 {
        self.gguf.tensors.iter().map(|it| it.size_bytes).sum()
    }

    pub(super) fn report(&self, plan: &TowerPlan) -> ProjectorReport {
        let config = plan.config();
        ProjectorReport {
            kind: config.kind.clone(),
            layers: config.layers.layers.len(),
            file_bytes: self.source.size_bytes(),
            placeholder: config.format().placeholder(),
        }
    }
}

/// The error with the word projector.
pub(super) fn named(error: Error) -> Error {
    match error {
        Error::InvalidModelFile(why) => invalid(why),
        Error::UnsupportedModel(why) => Error::UnsupportedModel(format!("projector: {why}")),
        Error::Read(why) => Error::Read(format!("projector: {why}")),
        error => error,
    }
}

fn invalid(why: impl fmt::Display) -> Error {
    Error::InvalidModelFile(format!("projector: {why}"))
}
