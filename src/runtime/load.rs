//! Opens and starts a model, and reports what was loaded.

use std::future::Future;
use std::rc::Rc;

use super::{
    AdapterFiles, ChosenDevice, LoadReport, LoadTimes, Opened, Tuning,
    fingerprint::FingerprintParts,
    kernel_choice::{KernelChoice, KnownKernels, conditions},
    open, start,
};
use crate::{
    Error, Result,
    engine::CausalModel,
    model::{Checkpoint, LoadOptions, Transformer, matrix_types, sampling_defaults},
    sample::SamplingDefaults,
    text::Tokenizer,
    weights::{ByteSource, ModelFiles},
};

/// What to load.
pub struct LoadRequest<'f, F, A> {
    /// The model's files.
    pub files: &'f F,
    /// The adapters to start with.
    pub adapters: &'f [AdapterFiles<A>],
    /// The options of the user.
    pub options: LoadOptions,
    /// Milliseconds of a monotonic clock, for the report.
    pub now_ms: fn() -> f64,
}

/// A model that is ready for its first request.
pub struct Loaded {
    /// The model, with its adapters set and its steps recorded.
    pub model: Transformer,
    /// Its tokenizer.
    pub tokenizer: Rc<Tokenizer>,
    /// The sampling parameters that its files recommend.
    pub sampling_defaults: SamplingDefaults,
    /// What was loaded.
    pub report: LoadReport,
    pub(super) fingerprint_parts: FingerprintParts,
    pub(super) kernels: KernelChoice,
}

/// Loads a model onto `device`. The device is awaited after the headers were read, so an invalid file
/// requests no device. `progress` is called with the tensor bytes read so far and in total.
///
/// # Errors
/// As [`open()`] and [`start()`]; errors of `device`; as
/// [`Adapters::set_on`](super::Adapters::set_on).
pub async fn load<F: ModelFiles, A: ModelFiles, D: Into<ChosenDevice>>(
    request: LoadRequest<'_, F, A>,
    device: impl Future<Output = Result<D>>,
    progress: impl FnMut(u64, u64),
) -> Result<Loaded> {
    reload(request, KnownKernels::None, device, progress).await
}

/// As [`load`], with what an earlier load found out about the kernels.
///
/// # Errors
/// As [`load`].
pub async fn reload<F: ModelFiles, A: ModelFiles, D: Into<ChosenDevice>>(
    request: LoadRequest<'_, F, A>,
    known: KnownKernels<'_>,
    device: impl Future<Output = Result<D>>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Loaded> {
    let LoadRequest {
        files,
        adapters,
        options,
        now_ms,
    } = request;
    // In a worker, the clock starts with the worker.
    let worker = now_ms();
    let Opened {
        checkpoint: Checkpoint { gguf, source },
        tokenizer,
        adapters,
    } = open(files, adapters, &options).await?;
    let opened_ms = now_ms();
    let mut chosen: ChosenDevice = device.await?.into();
    let device_ms = now_ms() - opened_ms;
    let types = matrix_types(&gguf);
    let (mut model, times, conditions, is_kept, sampler) = loop {
        let device = &chosen.device;
        let conditions = conditions(device, options.needs(&gguf, &types));
        let (tuning, sampler) = KernelChoice::tuning(known, &conditions);
        let is_kept = matches!(tuning, Tuning::Kept(_));
        let started = start(device, tuning, &gguf, &source, options, &mut progress).await;
        match (started, chosen.fallback.take()) {
            (Err(error @ Error::NoDevice(_)), Some(cpu)) => {
                chosen = ChosenDevice::cpu_because(cpu, &error);
            }
            (started, _) => {
                let (model, times) = started?;
                break (model, times, conditions, is_kept, sampler);
            }
        }
    };
    let ChosenDevice { device, reason, .. } = chosen;
    let recording_ms = device.now_ms();
    match is_kept {
        true => model.warm_up_kept(sampler).await?,
        false => model.warm_up().await?,
    }
    let recording = device.now_ms() - recording_ms;
    adapters.set_on(&mut model).await?;
    if is_kept {
        model.compile_rest();
    }
    let limits = model.limits();
    let report = LoadReport {
        device: device.report().clone(),
        device_reason: reason,
        variant: model.variant().name(),
        architecture: model.config().architecture.clone(),
        layers: model.config().layers.len(),
        file_bytes: source.size_bytes(),
        context_tokens: limits.context_tokens,
        kv_format: model.kv_format(),
        kv_pool_tokens: limits.page_count * limits.page_tokens,
        kv_bytes: model.kv_bytes(),
        vocab_size: limits.vocab_size,
        decode_dispatches: model.decode_dispatches(),
        lora: adapters.reports,
        load_ms: LoadTimes {
            worker,
            header: opened_ms - worker,
            device: device_ms,
            kernels: times.kernels,
            weights: times.weights,
            recording,
        },
    };
    Ok(Loaded {
        fingerprint_parts: FingerprintParts::of(&gguf, &report)?,
        kernels: KernelChoice::of(conditions, &model),
        sampling_defaults: sampling_defaults(&gguf.metadata),
        model,
        tokenizer,
        report,
    })
}
