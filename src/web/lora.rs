//! Low-rank adapters as the worker hands them over. Knows neither their files' form nor when they are
//! swapped.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::source::{ModelSource, PageFiles};
use crate::model::{Adapter, Transformer};
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// `{ name, files, scale }` of `www/src/worker/worker_host.ts`.
    pub type PageAdapter;

    #[wasm_bindgen(method, getter)]
    fn name(this: &PageAdapter) -> String;

    #[wasm_bindgen(method, getter)]
    fn files(this: &PageAdapter) -> PageFiles;

    #[wasm_bindgen(method, getter)]
    fn scale(this: &PageAdapter) -> f64;
}

/// An adapter in use, for `engine.info()`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LoraReport {
    name: String,
    scale: f32,
}

/// Adapters whose headers have been read.
pub(super) struct Lora {
    adapters: Vec<(Adapter<ModelSource>, f32)>,
    pub reports: Vec<LoraReport>,
}

impl Lora {
    /// Reads the headers.
    ///
    /// # Errors
    /// As [`Adapter::open`], with the adapter's name.
    pub async fn open(lora: &[PageAdapter]) -> Result<Lora> {
        let mut adapters = Vec::with_capacity(lora.len());
        let mut reports = Vec::with_capacity(lora.len());
        for adapter in lora {
            let (name, scale) = (adapter.name(), adapter.scale() as f32);
            let opened = Adapter::open(&adapter.files()).await;
            let opened = opened.map_err(|error| named(&name, error))?;
            adapters.push((opened.called(format!("LoRA adapter {name}")), scale));
            reports.push(LoraReport { name, scale });
        }
        Ok(Lora { adapters, reports })
    }

    /// Has `model` answer by these adapters and no others.
    ///
    /// # Errors
    /// As [`Transformer::set_adapters`]; the model stays as it was.
    pub async fn set_on(&self, model: &mut Transformer) -> Result<()> {
        let adapters = self
            .adapters
            .iter()
            .map(|(adapter, scale)| (adapter, *scale));
        model.set_adapters(&adapters.collect::<Vec<_>>()).await
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
