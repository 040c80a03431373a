//! Opens the files of an adapter: a GGUF file or a folder of PEFT's.

use super::{adapter::Adapter, gguf, peft};
use crate::{
    Result,
    weights::{ByteSource, ModelFiles},
};

impl<S: ByteSource> Adapter<S> {
    /// Reads the description of an adapter, not its data. Whether it fits a model is checked when it is set
    /// ([`Transformer::set_adapters`](crate::model::Transformer::set_adapters)).
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`](crate::Error::InvalidModelFile) and
    /// [`Error::UnsupportedModel`](crate::Error::UnsupportedModel) naming the file and what is wrong with
    /// it; the errors of `files`.
    pub async fn open<F: ModelFiles<Source = S>>(files: &F) -> Result<Adapter<S>> {
        match files.gguf_name() {
            Some(name) => gguf::open(files, &name).await,
            None => peft::open(files).await,
        }
    }
}
