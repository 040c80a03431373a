//! Opens and starts a model, and reports what was loaded.

use std::future::Future;
use std::rc::Rc;

use super::{
    AdapterFiles, ChosenDevice, LoadReport, LoadTimes, Opened, Tuning,
    fingerprint::FingerprintParts,
    kernel_choice::{KernelChoice, KnownKernels, conditions},
    open,
    projector::{self, Projector},
    start,
    start::start_tower,
};
use crate::{
    Error, Result,
    api::PictureReader,
    device::ComputeDevice,
    engine::CausalModel,
    model::{
        Checkpoint, LoadOptions, TowerPlan, Transformer, matrix_types, plan, sampling_defaults,
    },
    sample::SamplingDefaults,
    text::Tokenizer,
    weights::{ByteSource, Gguf, ModelFiles},
};

/// What to load.
pub struct LoadRequest<'f, F, A> {
    /// The model's files.
    pub files: &'f F,
    /// The file of the vision tower of a model that takes pictures.
    pub projector: Option<&'f F>,
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
    /// How it takes pictures.
    pub pictures: Option<PictureReader>,
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
        projector,
        adapters,
        mut options,
        now_ms,
    } = request;
    // In a worker, the clock starts with the worker.
    let worker = now_ms();
    let Opened {
        checkpoint: Checkpoint { gguf, source },
        tokenizer,
        adapters,
    } = open(files, adapters, &options).await?;
    let projector = Projector::open(files, projector, &options).await?;
    if let Some(projector) = &projector {
        options.takes_embeddings = true;
        let budget = &mut options.memory_budget_bytes;
        *budget = budget.map(|bytes| bytes.saturating_sub(projector.tensor_bytes()));
    }
    let opened_ms = now_ms();
    let mut chosen: ChosenDevice = device.await?.into();
    let device_ms = now_ms() - opened_ms;
    let types = matrix_types(&gguf);
    let tower_bytes = projector.as_ref().map_or(0, Projector::tensor_bytes);
    let mut text_bytes = 0;
    let (mut model, tower, times, conditions, is_kept, sampler) = loop {
        let device = &chosen.device;
        let tower = projector
            .as_ref()
            .map(|projector| tower(projector, &gguf, options, device));
        let tower = tower.transpose()?;
        let conditions = conditions(device, options.needs(&gguf, &types));
        let (tuning, sampler) = KernelChoice::tuning(known, &conditions);
        let is_kept = matches!(tuning, Tuning::Kept(_));
        let progress = |read_bytes, total_bytes| {
            text_bytes = total_bytes;
            progress(read_bytes, total_bytes + tower_bytes);
        };
        let started = start(device, tuning, &gguf, &source, options, progress).await;
        match (started, chosen.fallback.take()) {
            (Err(error @ Error::NoDevice(_)), Some(cpu)) => {
                chosen = ChosenDevice::cpu_because(cpu, &error);
            }
            (started, _) => {
                let (model, times) = started?;
                break (model, tower, times, conditions, is_kept, sampler);
            }
        }
    };
    let ChosenDevice { device, reason, .. } = chosen;
    if let (Some(projector), Some(tower)) = (&projector, &tower) {
        let progress = |read_bytes| progress(text_bytes + read_bytes, text_bytes + tower_bytes);
        start_tower(&mut model, tower, &projector.0.source, progress).await?;
    }
    let format = tower.as_ref().map(|tower| tower.config().format());
    let pictures = format.map(|format| PictureReader::new(format, &tokenizer));
    let pictures = pictures.transpose()?;
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
        projector: projector
            .as_ref()
            .zip(tower.as_ref())
            .map(|(it, plan)| it.report(plan)),
        // Known once the switches are.
        tools: None,
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
        fingerprint_parts: FingerprintParts::of(
            &gguf,
            projector.as_ref().map(|it| &it.0.gguf),
            &report,
        )?,
        kernels: KernelChoice::of(conditions, &model),
        sampling_defaults: sampling_defaults(&gguf.metadata),
        model,
        pictures,
        tokenizer,
        report,
    })
}

/// Validates the vision tower for a text model, before any weights are read.
fn tower<S: ByteSource>(
    projector: &Projector<S>,
    text: &Gguf,
    options: LoadOptions,
    device: &ComputeDevice,
) -> Result<TowerPlan> {
    let max_binding_bytes = device.max_binding_bytes();
    let text = plan(text, options, max_binding_bytes)?;
    TowerPlan::new(&projector.0.gguf, text.config(), max_binding_bytes).map_err(projector::named)
}
