//! The file of a vision tower and its projector, which stands beside the file of a text model.

use std::fmt;

use serde::Serialize;

use crate::{
    Error, Result,
    model::{Checkpoint, LoadOptions, TowerPlan},
    weights::{ByteSource, ModelFiles},
};

/// A vision tower whose headers were read.
pub(super) struct Projector<S>(pub Checkpoint<S>);

/// The projector, which makes rows of images, for `engine.info()`.
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
    /// The placeholder of an image in a prompt.
    pub placeholder: &'static str,
}

impl<S: ByteSource> Projector<S> {
    /// Reads the headers of the projector's file or, without one, of the tower that a folder with a model holds.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`], of a file saying that it is about the projector; errors of
    /// the files.
    pub async fn open<F: ModelFiles<Source = S>>(
        model: &F,
        projector: Option<&F>,
        options: &LoadOptions,
    ) -> Result<Option<Projector<S>>> {
        let Some(files) = projector else {
            return Ok(Checkpoint::open_tower(model).await?.map(Projector));
        };
        if files.gguf_name().is_none() {
            return Err(invalid("it is not a GGUF file"));
        }
        let checkpoint = Checkpoint::open(files, options).await.map_err(named)?;
        Ok(Some(Projector(checkpoint)))
    }

    /// Bytes of its tensors.
    pub(super) fn tensor_bytes(&self) -> u64 {
        self.0.gguf.tensors.iter().map(|it| it.size_bytes).sum()
    }

    pub(super) fn report(&self, plan: &TowerPlan) -> ProjectorReport {
        let config = plan.config();
        ProjectorReport {
            kind: config.kind.to_owned(),
            layers: config.layers.layers.len(),
            file_bytes: self.0.source.size_bytes(),
            placeholder: config.tower.markup.placeholder,
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
