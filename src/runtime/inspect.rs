//! Inspects a model without a device: reads headers as `open` does, and plans as `start` does.
//!
//! Inspection uses the loader. `npx inpage inspect` runs the same wasm module in Node, and its refusals come from the
//! loader's own plan. Only opening differs: `model_source/open.ts` downloads and caches, `head_files.ts` reads headers
//! one after the other, `www/src/node/disk_file.ts` reads from disk. 404s are cached like any other version of a
//! file: checked again online, trusted offline.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{error_code, projector::named};
use crate::model::{self, Checkpoint, InspectedTower, LoadOptions, ModelReport};
use crate::text::{Tokenizer, TokenizerReport};
use crate::weights::{ByteSource, ModelFiles};
use crate::{Error, Result};

/// Largest part of a buffer that kernels see on every device with WebGPU.
const SMALLEST_BINDING_BYTES: u64 = 128 << 20;
/// The largest binding that browsers offer on nearly all desktops.
const USUAL_BINDING_BYTES: u64 = (2 << 30) - 4;

/// The options of the load, and the device.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(optional_fields))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InspectionOptions {
    /// Load options, as for `createEngine`.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub load: LoadOptions,
    /// KV cache for this many sequences of the whole context, instead of `load.kvPoolTokens`.
    pub sequences: Option<usize>,
    /// `maxStorageBufferBindingSize` of the target device. If omitted, the minimum of WebGPU and the usual
    /// value of desktop browsers are both reported, and the latter decides.
    pub max_binding_bytes: Option<u64>,
}

impl InspectionOptions {
    /// The largest bindings of the devices to judge by.
    fn limits(&self) -> Vec<u64> {
        match self.max_binding_bytes {
            Some(bytes) => vec![bytes],
            None => vec![SMALLEST_BINDING_BYTES, USUAL_BINDING_BYTES],
        }
    }
}

/// The description of a model, and whether it runs.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ModelInspection"))]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The version of this build.
    pub version: &'static str,
    /// Size of all files with tensors that were opened.
    pub file_bytes: u64,
    /// The form in which the model is stored.
    pub container: ContainerReport,
    /// Whether a load would succeed, judging by the headers.
    pub runs: bool,
    /// The error of a load.
    pub refusal: Option<Refusal>,
    /// The same for each limit: the one in the options, or the smallest and the usual one.
    pub devices: Vec<LimitReport>,
    /// `None` if a header cannot be read, or if the file is only a projector.
    pub model: Option<ModelReport>,
    /// The vision tower and its projector, of an `mmproj` file or of a folder that has one.
    pub projector: Option<InspectedTower>,
    /// `None` if this build supports no tokenizer of the model.
    pub tokenizer: Option<TokenizerReport>,
}

/// The form in which a model is stored.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct ContainerReport {
    /// Format of the files with tensors.
    #[cfg_attr(test, ts(type = r#""gguf" | "safetensors""#))]
    pub kind: &'static str,
    /// The number of files that were opened.
    pub files: usize,
}

/// The reason why a model does not run.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ModelRefusal"))]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// `unsupported_model`, `invalid_model_file` or `out_of_memory`.
    pub code: &'static str,
    /// A message for humans.
    pub message: String,
}

/// Whether a model runs on devices with a limit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct LimitReport {
    /// Largest part of a buffer that kernels see.
    pub max_binding_bytes: u64,
    /// `None` if it runs.
    pub refusal: Option<Refusal>,
}

impl Inspection {
    /// The inspection before anything is known about the model.
    fn of_files<F: ModelFiles>(files: &CountedFiles<'_, F>) -> Inspection {
        Inspection {
            version: env!("CARGO_PKG_VERSION"),
            file_bytes: files.opened.borrow().values().sum(),
            container: ContainerReport {
                kind: match files.gguf_name() {
                    Some(_) => "gguf",
                    None => "safetensors",
                },
                files: files.opened.borrow().len(),
            },
            runs: false,
            refusal: None,
            devices: Vec::new(),
            model: None,
            projector: None,
            tokenizer: None,
        }
    }
}

impl Inspection {
    /// Notes for each limit why nothing runs there; the last one decides.
    fn judge(&mut self, limits: &[u64], refusal: impl Fn(u64) -> Option<Error>) {
        let on_device = |max_binding_bytes: &u64| LimitReport {
            max_binding_bytes: *max_binding_bytes,
            refusal: refusal(*max_binding_bytes).as_ref().map(Refusal::of),
        };
        self.devices = limits.iter().map(on_device).collect();
        self.refusal = self.devices.last().and_then(|it| it.refusal.clone());
        self.runs = self.refusal.is_none();
    }
}

impl Refusal {
    fn of(error: &Error) -> Refusal {
        Refusal {
            code: error_code(error),
            message: error.to_string(),
        }
    }
}

/// A model's files. Counts those with tensors, each once, however often it is opened.
struct CountedFiles<'f, F> {
    files: &'f F,
    /// The bytes of the files with tensors by their names.
    opened: RefCell<BTreeMap<String, u64>>,
}

impl<F> CountedFiles<'_, F> {
    fn new(files: &F) -> CountedFiles<'_, F> {
        CountedFiles {
            files,
            opened: RefCell::default(),
        }
    }
}

impl<F: ModelFiles> ModelFiles for CountedFiles<'_, F> {
    type Source = F::Source;

    fn gguf_name(&self) -> Option<String> {
        self.files.gguf_name()
    }

    async fn open(&self, name: &str) -> Result<Option<F::Source>> {
        let opened = self.files.open(name).await?;
        if let Some(source) = &opened
            && (self.gguf_name().is_some() || name.ends_with(".safetensors"))
        {
            self.opened
                .borrow_mut()
                .insert(name.to_owned(), source.size_bytes());
        }
        Ok(opened)
    }
}

/// Reads the headers of the model that `files` make up and reports what it is, how much GPU memory it
/// needs and whether this build runs it. Of a projector's file alone: what it is, and whether this build runs it beside a
/// model that it fits.
///
/// # Errors
/// [`Error::Read`] when the bytes cannot be read. Files that are no model, or one that does not run,
/// are reported in [`Inspection::refusal`].
pub async fn inspect<F: ModelFiles>(files: &F, options: InspectionOptions) -> Result<Inspection> {
    let files = CountedFiles::new(files);
    // The order is that of `open`, which stops at the first error.
    let opened = Checkpoint::open(&files, &options.load).await;
    let mut report = Inspection::of_files(&files);
    let mut checkpoint = match opened {
        Ok(checkpoint) => checkpoint,
        Err(error @ Error::Read(_)) => return Err(error),
        Err(error) => {
            report.refusal = Some(Refusal::of(&error));
            return Ok(report);
        }
    };
    let limits = options.limits();
    if model::is_tower(&checkpoint.gguf) {
        report.projector = Some(model::inspect_tower(&checkpoint.gguf));
        report.judge(&limits, |bytes| {
            model::tower_refusal(&checkpoint.gguf, None, bytes).map(named)
        });
        return Ok(report);
    }
    // The files of the model are counted once.
    let tower = match Checkpoint::open_tower(files.files).await {
        Err(error @ Error::Read(_)) => return Err(error),
        tower => tower,
    };
    let tokenizer = match Tokenizer::of(&files, &checkpoint.gguf.metadata).await {
        Err(error @ Error::Read(_)) => return Err(error),
        tokenizer => tokenizer,
    };
    if let Ok(tokenizer) = &tokenizer {
        checkpoint.set_token_count(tokenizer.vocab_size());
    }
    let gguf = checkpoint.gguf;
    let mut load = match options.sequences {
        Some(sequences) => model::for_sequences(&gguf, options.load, sequences),
        None => options.load,
    };
    if let Ok(Some(tower)) = &tower {
        load.takes_embeddings = true;
        let tower = model::inspect_tower(&tower.gguf);
        load.reserve(tower.loaded_bytes);
        report.projector = Some(tower);
    }
    report.judge(&limits, |bytes| {
        if let Err(error) = &tokenizer {
            return Some(error.clone());
        }
        let of_tower = || match &tower {
            Ok(None) => None,
            Ok(Some(tower)) => {
                model::tower_refusal(&tower.gguf, Some((&gguf, load)), bytes).map(named)
            }
            Err(error) => Some(error.clone()),
        };
        model::refusal(&gguf, load, bytes).or_else(of_tower)
    });
    report.model = Some(model::inspect(&gguf, load));
    let tokenizer = tokenizer.as_ref().ok();
    report.tokenizer = tokenizer.map(|it| TokenizerReport::of(it, &gguf.metadata));
    Ok(report)
}
