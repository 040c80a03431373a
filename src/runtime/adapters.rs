//! Low-rank adapters from their files to the model, with the names that users gave them.

use serde::Serialize;

use crate::{
    Error, Result,
    model::{Adapter, Transformer},
    weights::{ByteSource, ModelFiles},
};

/// An adapter to open.
#[derive(Debug, Clone)]
pub struct AdapterFiles<F> {
    /// Its name in messages and reports.
    pub name: String,
    /// A GGUF file or a PEFT folder.
    pub files: F,
    /// Factor of its product, in addition to the file's own scale.
    pub scale: f32,
}

/// An adapter in use, for `engine.info()`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LoraReport {
    /// Its name.
    pub name: String,
    /// Its scale.
    pub scale: f32,
}

/// Adapters whose headers have been read.
pub struct Adapters<S> {
    adapters: Vec<(Adapter<S>, f32)>,
    pub(super) reports: Vec<LoraReport>,
}

impl<S: ByteSource> Adapters<S> {
    /// Reads the headers.
    ///
    /// # Errors
    /// Same as [`Adapter::open`], with the adapter's name.
    pub async fn open<F: ModelFiles<Source = S>>(given: &[AdapterFiles<F>]) -> Result<Adapters<S>> {
        let mut adapters = Vec::with_capacity(given.len());
        let mut reports = Vec::with_capacity(given.len());
        for AdapterFiles { name, files, scale } in given {
            let opened = Adapter::open(files).await;
            let opened = opened.map_err(|error| named(name, error))?;
            adapters.push((opened.called(format!("LoRA adapter {name}")), *scale));
            let (name, scale) = (name.clone(), *scale);
            reports.push(LoraReport { name, scale });
        }
        Ok(Adapters { adapters, reports })
    }

    /// Makes `model` use these adapters and no others.
    ///
    /// # Errors
    /// Same as [`Transformer::set_adapters`]; the model is unchanged then.
    pub async fn set_on(&self, model: &mut Transformer) -> Result<()> {
        let adapters = self.adapters.iter();
        let adapters: Vec<_> = adapters.map(|(adapter, scale)| (adapter, *scale)).collect();
        model.set_adapters(&adapters).await
    }
}

fn named(name: &str, error: Error) -> Error {
    let text = |text: String| format!("LoRA adapter {name}: {text}");
    match error {
        Error::InvalidModelFile(why) => Error::InvalidModelFile(text(why)),
        Error::UnsupportedModel(why) => Error::UnsupportedModel(text(why)),
        Error::Read(why) => Error::Read(text(why)),
        error => error,
    }
}
