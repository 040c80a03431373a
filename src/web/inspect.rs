//! What a model is and whether it runs here, told from the headers of its files: joins the model's and
//! the tokenizer's part as `load` does. Asks for no GPU.

use std::cell::Cell;

use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::errors::{code_of, message_of, to_js};
use super::source::{ModelSource, PageFiles};
use crate::model::{self, Checkpoint, LoadOptions, ModelReport};
use crate::text::{Tokenizer, TokenizerReport};
use crate::weights::{ByteSource, ModelFiles};
use crate::{Error, Result};

/// Largest part of a buffer that kernels see on every device with WebGPU.
const LEAST_BINDING_BYTES: u64 = 128 << 20;
/// What browsers offer on nearly all desktops.
const USUAL_BINDING_BYTES: u64 = (2 << 30) - 4;

/// How the model would be loaded.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct InspectOptions {
    load: LoadOptions,
    /// Keys and values for so many sequences of the whole context, instead of `load.kvPoolTokens`.
    sequences: Option<usize>,
    /// Largest part of a buffer that kernels see on the device in question.
    max_binding_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    /// Of all files with tensors, as far as they were opened.
    file_bytes: u64,
    container: Container,
    /// As far as the header tells.
    runs: bool,
    /// The error of a load.
    refusal: Option<Refusal>,
    /// By how much of a buffer kernels see on a device: that of the options, or the least and the usual.
    devices: Vec<DeviceReport>,
    /// None if a header cannot be read.
    model: Option<ModelReport>,
    /// None if there is no tokenizer that this build knows.
    tokenizer: Option<TokenizerReport>,
}

#[derive(Debug, Serialize)]
struct Container {
    /// What the files with tensors are: `gguf` or `safetensors`.
    kind: &'static str,
    /// How many of them were opened.
    files: usize,
}

#[derive(Debug, Clone, Serialize)]
struct Refusal {
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
struct DeviceReport {
    max_binding_bytes: u64,
    refusal: Option<Refusal>,
}

impl Refusal {
    fn of(error: &Error) -> Refusal {
        Refusal {
            code: code_of(error),
            message: error.to_string(),
        }
    }
}

/// The model's files, those with tensors counted as they are opened.
struct CountedFiles<'f> {
    files: &'f PageFiles,
    count: Cell<usize>,
    size_bytes: Cell<u64>,
}

impl ModelFiles for CountedFiles<'_> {
    type Source = ModelSource;

    fn gguf_name(&self) -> Option<String> {
        self.files.gguf_name()
    }

    async fn open(&self, name: &str) -> Result<Option<ModelSource>> {
        let opened = self.files.open(name).await?;
        if let Some(source) = &opened
            && (self.gguf_name().is_some() || name.ends_with(".safetensors"))
        {
            self.count.set(self.count.get() + 1);
            let size_bytes = self.size_bytes.get() + source.size_bytes();
            self.size_bytes.set(size_bytes);
        }
        Ok(opened)
    }
}

/// Reads the headers of the model that `files` make up, which no GPU is needed for, and tells what it is,
/// what it takes of a GPU and whether this build runs it. `options_json` is an object of `InspectOptions`.
///
/// # Errors
/// When the bytes cannot be had, or an option is wrong; files that are no model, or none that runs, are
/// told by `refusal`.
#[wasm_bindgen(js_name = inspectModel)]
pub async fn inspect_model(
    files: PageFiles,
    options_json: &str,
) -> std::result::Result<JsValue, JsValue> {
    let options: InspectOptions = serde_json::from_str(options_json)
        .map_err(|error| to_js(&Error::Internal(format!("invalid options: {error}"))))?;
    let report = inspect(&files, options)
        .await
        .map_err(|error| to_js(&error))?;
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    report
        .serialize(&serializer)
        .map_err(|error| JsValue::from(message_of(&error.into())))
}

async fn inspect(files: &PageFiles, options: InspectOptions) -> Result<Report> {
    let files = CountedFiles {
        files,
        count: Cell::new(0),
        size_bytes: Cell::new(0),
    };
    // In the order of a load.
    let opened = Checkpoint::open(&files, &options.load).await;
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION"),
        file_bytes: files.size_bytes.get(),
        container: Container {
            kind: match files.gguf_name() {
                Some(_) => "gguf",
                None => "safetensors",
            },
            files: files.count.get(),
        },
        runs: false,
        refusal: None,
        devices: Vec::new(),
        model: None,
        tokenizer: None,
    };
    let mut checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error @ Error::Read(_)) => return Err(error),
        Err(error) => {
            report.refusal = Some(Refusal::of(&error));
            return Ok(report);
        }
    };
    let tokenizer = match Tokenizer::of(&files, &checkpoint.gguf.metadata).await {
        Ok(tokenizer) => {
            checkpoint.set_token_count(tokenizer.vocab_size());
            Ok(tokenizer)
        }
        Err(error @ Error::Read(_)) => return Err(error),
        Err(error) => Err(error),
    };
    let gguf = checkpoint.gguf;
    let load = match options.sequences {
        Some(sequences) => model::for_sequences(&gguf, options.load, sequences),
        None => options.load,
    };
    let refusal = |max_binding_bytes: u64| match &tokenizer {
        Err(error) => Some(Refusal::of(error)),
        Ok(_) => model::refusal(&gguf, load, max_binding_bytes)
            .as_ref()
            .map(Refusal::of),
    };
    let bindings = match options.max_binding_bytes {
        Some(bytes) => vec![bytes],
        None => vec![LEAST_BINDING_BYTES, USUAL_BINDING_BYTES],
    };
    let devices = bindings.into_iter().map(|max_binding_bytes| DeviceReport {
        max_binding_bytes,
        refusal: refusal(max_binding_bytes),
    });
    report.devices = devices.collect();
    // The last is the one in question.
    report.refusal = report.devices.last().and_then(|it| it.refusal.clone());
    report.runs = report.refusal.is_none();
    report.model = Some(model::inspect(&gguf, load));
    let tokenizer = tokenizer.as_ref().ok();
    report.tokenizer = tokenizer.map(|it| TokenizerReport::of(it, &gguf.metadata));
    Ok(report)
}
