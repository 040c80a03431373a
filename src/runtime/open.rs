//! Opens a model: reads headers and the tokenizer's tables, no weights. Needs no device.

use std::rc::Rc;

use super::{AdapterFiles, Adapters};
use crate::{
    Error, Result,
    model::{Checkpoint, LoadOptions, is_tower},
    text::Tokenizer,
    weights::ModelFiles,
};

/// A model whose files were opened, from sources `S`, and its adapters, from sources `A`.
pub struct Opened<S, A> {
    /// Metadata, tensors and their bytes.
    pub checkpoint: Checkpoint<S>,
    /// Its tokenizer.
    pub tokenizer: Rc<Tokenizer>,
    /// The adapters to start with.
    pub adapters: Adapters<A>,
}

/// Opens the model that `files` make up, and its adapters.
///
/// # Errors
/// [`crate::Error::InvalidModelFile`] and [`crate::Error::UnsupportedModel`] naming the file and what
/// is wrong with it; errors of the files.
pub async fn open<F: ModelFiles, A: ModelFiles>(
    files: &F,
    adapters: &[AdapterFiles<A>],
    options: &LoadOptions,
) -> Result<Opened<F::Source, A::Source>> {
    let adapters = Adapters::open(adapters).await?;
    let mut checkpoint = Checkpoint::open(files, options).await?;
    if is_tower(&checkpoint.gguf) {
        return Err(Error::UnsupportedModel(
            "the file is a vision tower with its projector: load its text model, with this file as projector".into(),
        ));
    }
    let tokenizer = Rc::new(Tokenizer::of(files, &checkpoint.gguf.metadata).await?);
    checkpoint.set_token_count(tokenizer.vocab_size());
    Ok(Opened {
        checkpoint,
        tokenizer,
        adapters,
    })
}
