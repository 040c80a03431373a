//! The smaller model that guesses tokens for another one.

use std::fmt;

use serde::Serialize;

use super::{Tuning, start};
use crate::{
    Error, Result,
    model::{Checkpoint, DraftModel, LoadOptions, Transformer, inspect, is_tower},
    text::Tokenizer,
    weights::{ByteSource, ModelFiles},
};

/// Token ids that only one of the two models may have: some models pad their vocabulary.
const MAX_FURTHER_IDS: usize = 128;

/// A draft model whose headers were read.
pub(super) struct OpenedDraft<S>(pub Checkpoint<S>);

/// The draft model, for `engine.info()`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DraftModelReport {
    /// Its architecture.
    pub architecture: String,
    /// Its layers.
    pub layers: usize,
    /// Size of its files.
    pub file_bytes: u64,
    /// Bytes of its KV cache in all layers.
    pub kv_bytes: u64,
}

impl<S: ByteSource> OpenedDraft<S> {
    /// Reads the headers of the draft model, and compares its tokens with those of the model.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] if its token ids mean something else; errors of the files. All say that they are about the draft model.
    pub async fn open<F: ModelFiles<Source = S>>(
        files: Option<&F>,
        tokenizer: &Tokenizer,
        options: &LoadOptions,
    ) -> Result<Option<OpenedDraft<S>>> {
        let Some(files) = files else {
            return Ok(None);
        };
        let mut checkpoint = Checkpoint::open(files, options).await.map_err(named)?;
        if is_tower(&checkpoint.gguf) {
            return Err(unsupported("it is a vision tower"));
        }
        let metadata = &checkpoint.gguf.metadata;
        let own = Tokenizer::of(files, metadata).await.map_err(named)?;
        same_tokens(tokenizer, &own)?;
        checkpoint.set_token_count(own.vocab_size());
        Ok(Some(OpenedDraft(checkpoint)))
    }

    /// The options with which it is loaded: one sequence of the same context.
    fn options(options: LoadOptions) -> LoadOptions {
        LoadOptions {
            kv_pool_tokens: Some(1),
            takes_embeddings: false,
            memory_budget_bytes: None,
            ..options
        }
    }

    /// Bytes of memory that it needs.
    pub fn needed_bytes(&self, options: LoadOptions) -> u64 {
        let report = inspect(&self.0.gguf, Self::options(options));
        report.memory.map_or(0, |memory| memory.total_bytes)
    }

    /// Bytes of its tensors.
    pub fn tensor_bytes(&self) -> u64 {
        self.0.gguf.tensors.iter().map(|it| it.size_bytes).sum()
    }

    /// Starts it beside `model`, with the same kernels if they are right for it. `progress` is called with the tensor bytes
    /// read so far.
    pub async fn start(
        &self,
        model: &mut Transformer,
        options: LoadOptions,
        mut progress: impl FnMut(u64),
    ) -> Result<DraftModelReport> {
        let Checkpoint { gguf, source } = &self.0;
        let device = model.device().clone();
        let tuning = Tuning::Prefer(model.variant());
        let options = Self::options(options);
        let progress = |read_bytes, _| progress(read_bytes);
        let started = Box::pin(start(&device, tuning, gguf, source, options, progress));
        let (mut draft, _) = started.await.map_err(named)?;
        if draft.config().embedding.is_some() || !draft.config().is_causal {
            return Err(unsupported("it makes embeddings"));
        }
        // Another draft of its own would not be used.
        draft.set_drafts(false);
        Box::pin(draft.warm_up()).await.map_err(named)?;
        let report = DraftModelReport {
            architecture: draft.config().architecture.clone(),
            layers: draft.config().layers.len(),
            file_bytes: source.size_bytes(),
            kv_bytes: draft.kv_bytes(),
        };
        model.set_draft_model(DraftModel::new(draft));
        Ok(report)
    }
}

/// An error unless the token ids of both models mean the same.
fn same_tokens(model: &Tokenizer, draft: &Tokenizer) -> Result<()> {
    let sizes = [model.vocab_size(), draft.vocab_size()];
    if sizes[0].abs_diff(sizes[1]) > MAX_FURTHER_IDS {
        return Err(unsupported(format!(
            "its tokenizer has {} tokens, and that of the model {}: both need the same one",
            sizes[1], sizes[0]
        )));
    }
    let common = 0..sizes[0].min(sizes[1]) as u32;
    let meaning = |of: &Tokenizer, id: u32| (of.token_bytes(id).to_vec(), of.is_special(id));
    let mut common = common.filter(|id| meaning(model, *id) != meaning(draft, *id));
    match common.next() {
        None => Ok(()),
        Some(id) => {
            let text = |of: &Tokenizer| String::from_utf8_lossy(of.token_bytes(id)).into_owned();
            Err(unsupported(format!(
                "token {id} of its tokenizer is {:?}, and {:?} in that of the model: both need the same one",
                text(draft),
                text(model)
            )))
        }
    }
}

/// The error with the words draft model.
fn named(error: Error) -> Error {
    match error {
        Error::InvalidModelFile(why) => Error::InvalidModelFile(format!("draft model: {why}")),
        Error::UnsupportedModel(why) => unsupported(why),
        Error::OutOfMemory(why) => Error::OutOfMemory(format!("draft model: {why}")),
        Error::Read(why) => Error::Read(format!("draft model: {why}")),
        error => error,
    }
}

fn unsupported(why: impl fmt::Display) -> Error {
    Error::UnsupportedModel(format!("draft model: {why}"))
}
