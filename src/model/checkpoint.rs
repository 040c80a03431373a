//! A model's description and its bytes, independent of the container of its files.

use super::{config::llama_like::TOKEN_COUNT, hugging_face, load_options::LoadOptions};
use crate::{
    Result,
    weights::{ByteSource, ConvertedSource, Gguf, JoinedSource, ModelFiles, gguf::split},
};

/// A model that was opened; `runtime::start` loads it.
#[derive(Debug)]
pub struct Checkpoint<S> {
    /// Metadata and tensors, under GGUF names.
    pub gguf: Gguf,
    /// The bytes that the tensors' offsets refer to.
    pub source: CheckpointSource<S>,
}

/// The bytes of a checkpoint's tensors.
#[derive(Debug)]
pub enum CheckpointSource<S> {
    /// The tensor as the files store it.
    Stored(JoinedSource<S>),
    /// Converted while they are read.
    Converted(ConvertedSource<JoinedSource<S>>),
}

impl<S: ByteSource> Checkpoint<S> {
    /// Reads the headers; no tensor data.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModelFile`] and [`crate::Error::UnsupportedModel`] naming the file and
    /// what is wrong with it; errors of the files.
    pub async fn open<F: ModelFiles<Source = S>>(
        files: &F,
        options: &LoadOptions,
    ) -> Result<Checkpoint<S>> {
        match files.gguf_name() {
            Some(name) => {
                let (gguf, source) = split::read(files, &name).await?;
                let source = CheckpointSource::Stored(source);
                Ok(Checkpoint { gguf, source })
            }
            None => {
                let (gguf, source) = hugging_face::read(files, options.quantize).await?;
                let source = CheckpointSource::Converted(source);
                Ok(Checkpoint { gguf, source })
            }
        }
    }

    /// Reads the headers of the vision tower that the files of a text model hold, as an `mmproj` file; `None` if they
    /// hold none. GGUF files of text models never do.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub async fn open_tower<F: ModelFiles<Source = S>>(files: &F) -> Result<Option<Checkpoint<S>>> {
        if files.gguf_name().is_some() {
            return Ok(None);
        }
        let tower = hugging_face::read_tower(files).await?;
        Ok(tower.map(|(gguf, source)| Checkpoint {
            gguf,
            source: CheckpointSource::Converted(source),
        }))
    }

    /// Sets the number of tokens of the tokenizer: embeddings may be padded beyond it.
    pub fn set_token_count(&mut self, tokens: usize) {
        self.gguf.metadata.insert(TOKEN_COUNT, tokens as u64);
    }
}

impl<S: ByteSource> ByteSource for CheckpointSource<S> {
    fn size_bytes(&self) -> u64 {
        match self {
            CheckpointSource::Stored(source) => source.size_bytes(),
            CheckpointSource::Converted(source) => source.size_bytes(),
        }
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        match self {
            CheckpointSource::Stored(source) => source.read_at(offset_bytes, buf).await,
            CheckpointSource::Converted(source) => source.read_at(offset_bytes, buf).await,
        }
    }
}
