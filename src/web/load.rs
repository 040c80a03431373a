//! From a model's bytes to a model that answers: GPU, file, tokenizer, weights, engine. The one
//! place that joins all parts; each of them knows nothing of the others.

use std::rc::Rc;

use js_sys::{Function, Promise, Reflect};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::host::now_ms;
use super::lora::{Lora, LoraReport, PageAdapter};
use crate::api::{CallFormat, Fingerprint, LazyCompiler, ReadyModel};
use crate::device::{Begun, BrowserDevice, Gpu, GpuOptions, GpuReport};
use crate::engine::{CausalModel, Engine, EngineLimits, ModelAccess};
use crate::model::{self, Checkpoint, LoadOptions, StartTimes, Transformer};
use crate::ops::kv_memory::KvFormat;
use crate::text::Tokenizer;
use crate::weights::{ByteSource, ModelFiles};
use crate::{Error, Result};

/// What was loaded, for `engine.info()`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LoadReport {
    #[serde(flatten)]
    gpu: GpuReport,
    /// The form of the kernels that was proven on the GPU.
    variant: String,
    architecture: String,
    layers: usize,
    /// What the tensors take, as they are loaded: of GGUF files with their headers.
    file_bytes: u64,
    context_tokens: usize,
    /// How keys and values are kept.
    kv_format: KvFormat,
    /// Tokens of keys and values that all sequences share.
    kv_pool_tokens: usize,
    /// What they take in all layers.
    kv_bytes: u64,
    vocab_size: usize,
    /// Dispatches of one greedy decode step.
    decode_dispatches: usize,
    /// Low-rank adapters in use.
    pub lora: Vec<LoraReport>,
    load_ms: LoadTimes,
}

/// How long the parts of a load took, in milliseconds.
#[derive(Debug, Clone, Serialize)]
struct LoadTimes {
    /// From the worker's start until its script and the wasm module ran and the source was open.
    worker: f64,
    /// Reading the file's header, and the tokenizer's tables out of it.
    header: f64,
    /// Asking for the GPU device.
    device: f64,
    #[serde(flatten)]
    start: StartTimes,
}

/// What a load gives.
pub(super) struct LoadedModel {
    pub ready: ReadyModel,
    pub report: LoadReport,
    access: ModelAccess<Served>,
    /// What the fingerprint is made of besides adapters.
    fingerprint_parts: Vec<String>,
    #[cfg(feature = "test-hooks")]
    pub controls: Rc<crate::test_hooks::Controls>,
}

/// What the engine runs.
#[cfg(not(feature = "test-hooks"))]
pub(super) type Served = Transformer;
#[cfg(feature = "test-hooks")]
pub(super) type Served = crate::test_hooks::HookedModel<Transformer>;

impl LoadedModel {
    /// Has the model answer by these adapters and no others, once what runs has ended; gives what
    /// becomes of the report.
    ///
    /// # Errors
    /// As [`Lora::set_on`] and [`ModelAccess::change`].
    pub fn set_lora(&self, lora: Lora) -> impl Future<Output = Result<LoadReport>> + use<> {
        let (access, fingerprint) = (self.access.clone(), self.ready.fingerprint.clone());
        let (parts, report) = (self.fingerprint_parts.clone(), self.report.clone());
        async move {
            let change = async move |model: &mut Served| {
                #[cfg(feature = "test-hooks")]
                let model = model.model_mut();
                lora.set_on(model).await?;
                // Before the next request: its answer names the model that gave it.
                fingerprint.set(&with_lora(&parts, &lora.reports));
                Ok(LoadReport {
                    decode_dispatches: model.decode_dispatches(),
                    lora: lora.reports,
                    ..report
                })
            };
            access.change(change).await
        }
    }
}

/// Loads the model that `files` make up and starts its engine; `progress` is told the tensor bytes read so
/// far and in all. `on_end` is told the error if the engine ends by itself.
pub(super) async fn load<F: ModelFiles>(
    files: &F,
    lora: &[PageAdapter],
    options: LoadOptions,
    max_queue: usize,
    progress: impl FnMut(u64, u64),
    on_end: impl FnOnce(Error) + 'static,
) -> Result<LoadedModel> {
    // The clock of a worker starts with it.
    let began_ms = now_ms();
    // The headers first: a file that is none should not cost a GPU device.
    let lora = Lora::open(lora).await?;
    let mut checkpoint = Checkpoint::open(files, &options).await?;
    let tokenizer = Rc::new(Tokenizer::of(files, &checkpoint.gguf.metadata).await?);
    checkpoint.set_token_count(tokenizer.vocab_size());
    let Checkpoint { gguf, source } = checkpoint;

    let read_ms = now_ms();
    let gpu = Gpu::request(gpu_options()).await?;
    let given_ms = now_ms();
    let report = gpu.report().clone();
    let (mut model, start) = model::start(gpu, &gguf, &source, options, progress).await?;
    lora.set_on(&mut model).await?;
    let variant = model.compute().variant().name();
    let report = LoadReport {
        architecture: model.config().architecture.clone(),
        layers: model.config().layers.len(),
        file_bytes: source.size_bytes(),
        context_tokens: model.limits().context_tokens,
        kv_format: model.kv_format(),
        kv_pool_tokens: model.limits().page_count * model.limits().page_tokens,
        kv_bytes: model.kv_bytes(),
        vocab_size: model.limits().vocab_size,
        decode_dispatches: model.decode_dispatches(),
        lora: lora.reports,
        gpu: report,
        variant,
        load_ms: LoadTimes {
            worker: began_ms,
            header: read_ms - began_ms,
            device: given_ms - read_ms,
            start,
        },
    };
    let tensors = gguf.tensors.iter().map(|it| (it.ty, it.size_bytes));
    let fingerprint_parts = vec![
        env!("CARGO_PKG_VERSION").to_owned(),
        gguf.metadata
            .str("general.name")?
            .unwrap_or_default()
            .to_owned(),
        report.architecture.clone(),
        format!("{:?}", tensors.collect::<Vec<_>>()),
        report.file_bytes.to_string(),
        report.gpu.adapter.clone(),
        report.variant.clone(),
        report.kv_format.name().to_owned(),
    ];
    let limits = EngineLimits {
        max_queue,
        ..EngineLimits::default()
    };
    #[cfg(feature = "test-hooks")]
    let (model, controls) =
        crate::test_hooks::HookedModel::new(model, Rc::new(super::host::BrowserHost));
    let (engine, handle) = Engine::new(model, limits);
    let access = engine.model_access();
    spawn_local(async move {
        if let Err(error) = engine.run().await {
            on_end(error);
        }
    });
    let call_format = CallFormat::of(&tokenizer);
    let ready = ReadyModel {
        engine: handle,
        tokenizer,
        fingerprint: Fingerprint::of(&with_lora(&fingerprint_parts, &report.lora)),
        sampling_defaults: model::sampling_defaults(&gguf.metadata),
        call_format,
        compiler: LazyCompiler::default(),
    };
    Ok(LoadedModel {
        ready,
        report,
        access,
        fingerprint_parts,
        #[cfg(feature = "test-hooks")]
        controls,
    })
}

/// What answers by these adapters depend on.
fn with_lora(parts: &[String], lora: &[LoraReport]) -> Vec<String> {
    let adapters = lora.iter().map(|adapter| format!("{adapter:?}"));
    parts.iter().cloned().chain(adapters).collect()
}

/// Asks for the device with what the worker's wrapper around `requestDevice`
/// (www/src/worker/webgpu_features.ts) says of it in globals.
pub(super) fn gpu_options() -> GpuOptions {
    GpuOptions {
        browser: Some(browser_device),
        compile_ahead: Some(compile_ahead),
        now_ms,
    }
}

fn browser_device() -> BrowserDevice {
    BrowserDevice {
        adapter: global("inpageAdapter")
            .and_then(|name| name.as_string())
            .unwrap_or_default(),
        subgroups: global("inpageSubgroups").is_some_and(|value| value.is_truthy()),
        packed_dot: global("inpagePackedDot").is_some_and(|value| value.is_truthy()),
    }
}

/// What `www/src/worker/compile_ahead.ts` does for the device; nothing where it does not stand by.
fn compile_ahead(wgsl: Vec<String>) -> Begun {
    let texts = js_sys::Array::from_iter(wgsl.iter().map(JsValue::from));
    let begun = global("inpageCompileAhead")
        .and_then(|it| it.dyn_into::<Function>().ok())
        .and_then(|it| it.call1(&JsValue::UNDEFINED, &texts).ok())
        .and_then(|it| it.dyn_into::<Promise>().ok());
    Box::pin(async move {
        if let Some(begun) = begun {
            // What was refused will be asked for again, and told then.
            let _ = JsFuture::from(begun).await;
        }
    })
}

fn global(name: &str) -> Option<JsValue> {
    Reflect::get(&js_sys::global(), &name.into()).ok()
}
