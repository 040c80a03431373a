//! From a model's bytes to a model that answers: GPU, file, tokenizer, weights, engine. The one
//! place that joins all parts; each of them knows nothing of the others.

use std::rc::Rc;

use serde::Serialize;
use wasm_bindgen_futures::spawn_local;

use super::host::now_ms;
use crate::api::{CallFormat, LazyCompiler, ReadyModel, system_fingerprint};
use crate::device::{BrowserDevice, Gpu, GpuOptions, GpuReport};
use crate::engine::{Engine, EngineLimits};
use crate::model::{self, CausalModel, Compute, LoadOptions};
use crate::ops::self_test;
use crate::text::Tokenizer;
use crate::weights::{ByteSource, Gguf};
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
    file_bytes: u64,
    context_tokens: usize,
    vocab_size: usize,
    /// Dispatches of one greedy decode step.
    decode_dispatches: usize,
}

/// What a load gives.
pub(super) struct Loaded {
    pub ready: ReadyModel,
    pub report: LoadReport,
    #[cfg(feature = "test-hooks")]
    pub controls: Rc<crate::test_hooks::Controls>,
}

/// Loads the model in `source` and starts its engine; `progress` is told the tensor bytes read so
/// far and in all. `on_end` is told the error if the engine ends by itself.
pub(super) async fn load<S: ByteSource>(
    source: &S,
    max_queue: usize,
    progress: impl FnMut(u64, u64),
    on_end: impl FnOnce(Error) + 'static,
) -> Result<Loaded> {
    // The header first: a file that is none should not cost a GPU device.
    let gguf = Gguf::read(source).await?;
    let tokenizer = Rc::new(Tokenizer::from_gguf(&gguf.metadata)?);

    let gpu = Gpu::request(gpu_options()).await?;
    let variant = self_test::best_variant(&gpu, &model::formats(&gguf)).await?;
    let report = gpu.report().clone();
    let compute = Compute::Gpu { gpu, variant };
    let mut model = model::load(compute, &gguf, source, LoadOptions::default(), progress).await?;
    model.warm_up().await?;
    let variant = variant.name();
    let report = LoadReport {
        architecture: model.config().architecture.clone(),
        layers: model.config().layers,
        file_bytes: source.size_bytes(),
        context_tokens: model.context_tokens(),
        vocab_size: model.vocab_size(),
        decode_dispatches: model.decode_dispatches(),
        gpu: report,
        variant,
    };
    let fingerprint = system_fingerprint(&[
        env!("CARGO_PKG_VERSION"),
        gguf.metadata.str("general.name")?.unwrap_or_default(),
        &report.architecture,
        &format!(
            "{:?}",
            gguf.tensors
                .iter()
                .map(|t| (t.ty, t.size_bytes))
                .collect::<Vec<_>>()
        ),
        &report.file_bytes.to_string(),
        &report.gpu.adapter,
        &report.variant,
    ]);
    let limits = EngineLimits {
        max_queue,
        ..EngineLimits::default()
    };
    #[cfg(feature = "test-hooks")]
    let (model, controls) =
        crate::test_hooks::HookedModel::new(model, Rc::new(super::host::BrowserHost));
    let (engine, handle) = Engine::new(model, limits);
    spawn_local(async move {
        if let Err(error) = engine.run().await {
            on_end(error);
        }
    });
    let call_format = CallFormat::of(&tokenizer);
    let ready = ReadyModel {
        engine: handle,
        tokenizer,
        fingerprint,
        sampling_defaults: model::sampling_defaults(&gguf.metadata),
        call_format,
        compiler: LazyCompiler::default(),
    };
    Ok(Loaded {
        ready,
        report,
        #[cfg(feature = "test-hooks")]
        controls,
    })
}

/// Asks for the device with what the worker's wrapper around `requestDevice`
/// (www/src/webgpu_features.ts) says of it in globals.
pub(super) fn gpu_options() -> GpuOptions {
    GpuOptions {
        browser: Some(browser_device),
        now_ms,
    }
}

fn browser_device() -> BrowserDevice {
    let global = |name: &str| js_sys::Reflect::get(&js_sys::global(), &name.into()).ok();
    BrowserDevice {
        adapter: global("inpageAdapter")
            .and_then(|name| name.as_string())
            .unwrap_or_default(),
        subgroups: global("inpageSubgroups").is_some_and(|value| value.is_truthy()),
        packed_dot: global("inpagePackedDot").is_some_and(|value| value.is_truthy()),
    }
}
