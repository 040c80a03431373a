//! Opens and starts a model, and reports what was loaded.

use std::future::Future;
use std::rc::Rc;

use super::{
    AdapterFiles, ChosenDevice, LoadReport, LoadTimes, LoraReport, StartTimes, Tuning,
    draft_model::OpenedDraft,
    fingerprint::FingerprintParts,
    kernel_choice::{KernelChoice, KnownKernels, conditions},
    open::{Opened, open},
    projector::{self, Projector},
    start,
    start::start_tower,
};
use crate::{
    Error, Result,
    api::ImageReader,
    device::ComputeDevice,
    engine::CausalModel,
    model::{
        Checkpoint, LoadOptions, TowerPlan, Transformer, matrix_types, plan, sampling_defaults,
    },
    ops::sample::SamplerVerdict,
    sample::SamplingDefaults,
    text::Tokenizer,
    weights::{ByteSource, Gguf, ModelFiles},
};

/// The files, the device and the options of a load.
pub struct LoadRequest<'f, F, A> {
    /// The model's files.
    pub files: &'f F,
    /// The file of the vision tower of a model that takes images.
    pub projector: Option<&'f F>,
    /// The files of a smaller model that guesses tokens for the model.
    pub draft_model: Option<&'f F>,
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
    /// The reader of images; `None`: the model takes text only.
    pub images: Option<ImageReader>,
    /// The sampling parameters that its files recommend.
    pub sampling_defaults: SamplingDefaults,
    /// The report of the load.
    pub report: LoadReport,
    pub(super) fingerprint_parts: FingerprintParts,
    pub(super) kernels: KernelChoice,
}

/// Loads a model onto `device`. The device is awaited after the headers were read, so an invalid file
/// requests no device. `progress` is called with the tensor bytes read so far and in total.
///
/// # Errors
/// Same as [`open()`] and [`start()`]; errors of `device`; as
/// [`Adapters::set_on`](super::Adapters::set_on).
pub async fn load<F: ModelFiles, A: ModelFiles, D: Into<ChosenDevice>>(
    request: LoadRequest<'_, F, A>,
    device: impl Future<Output = Result<D>>,
    progress: impl FnMut(u64, u64),
) -> Result<Loaded> {
    reload(request, KnownKernels::None, device, progress).await
}

/// Same as [`load`], with what an earlier load found out about the kernels.
///
/// # Errors
/// Same as [`load`].
pub async fn reload<F: ModelFiles, A: ModelFiles, D: Into<ChosenDevice>>(
    request: LoadRequest<'_, F, A>,
    known: KnownKernels<'_>,
    device: impl Future<Output = Result<D>>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Loaded> {
    let now_ms = request.now_ms;
    // In a worker, the clock starts with the worker.
    let worker = now_ms();
    let files = OpenedFiles::open(request).await?;
    let opened = files.opened;
    let opened_ms = now_ms();
    let mut chosen: ChosenDevice = device.await?.into();
    let device_ms = now_ms() - opened_ms;
    let (projector, draft) = (files.projector.as_ref(), files.draft.as_ref());
    let tower_bytes = projector.map_or(0, Projector::tensor_bytes);
    let further_bytes = tower_bytes + draft.map_or(0, OpenedDraft::tensor_bytes);
    let mut text_bytes = 0;
    let text_progress = |read_bytes, total_bytes| {
        text_bytes = total_bytes;
        progress(read_bytes, total_bytes + further_bytes);
    };
    let text = Text {
        checkpoint: &opened.checkpoint,
        projector,
        options: files.options,
    };
    // Boxed, so that the future of a load stays small: it is polled on the stack.
    let mut started = Box::pin(text.start(&mut chosen, known, text_progress)).await?;
    if let (Some(projector), Some(tower)) = (projector, &started.tower) {
        let progress = |read_bytes| progress(text_bytes + read_bytes, text_bytes + further_bytes);
        start_tower(&mut started.model, tower, &projector.0.source, progress).await?;
    }
    let images = started.images(&opened.tokenizer)?;
    let recording = started.record(&chosen.device).await?;
    let mut draft_model = None;
    if let Some(draft) = draft {
        let before = text_bytes + tower_bytes;
        let progress = |read_bytes| progress(before + read_bytes, text_bytes + further_bytes);
        draft_model =
            Some(Box::pin(draft.start(&mut started.model, files.options, progress)).await?);
    }
    opened.adapters.set_on(&mut started.model).await?;
    if started.is_kept {
        started.model.compile_rest();
    }
    let load_ms = LoadTimes {
        worker,
        header: opened_ms - worker,
        device: device_ms,
        kernels: started.times.kernels,
        weights: started.times.weights,
        recording,
    };
    let mut report = text.report(&started, chosen, opened.adapters.reports, load_ms);
    report.draft_model = draft_model;
    let projector = projector.map(|it| &it.0.gguf);
    Ok(Loaded {
        fingerprint_parts: FingerprintParts::of(&opened.checkpoint.gguf, projector, &report)?,
        kernels: KernelChoice::of(started.conditions, &started.model),
        sampling_defaults: sampling_defaults(&opened.checkpoint.gguf.metadata),
        model: started.model,
        images,
        tokenizer: opened.tokenizer,
        report,
    })
}

/// The files of a load whose headers were read.
struct OpenedFiles<S, A> {
    opened: Opened<S, A>,
    projector: Option<Projector<S>>,
    draft: Option<OpenedDraft<S>>,
    /// The options of the text model: its memory is what the tower and the draft model leave.
    options: LoadOptions,
}

impl<S: ByteSource, A: ByteSource> OpenedFiles<S, A> {
    async fn open(
        request: LoadRequest<'_, impl ModelFiles<Source = S>, impl ModelFiles<Source = A>>,
    ) -> Result<OpenedFiles<S, A>> {
        let mut options = request.options;
        let opened = open(request.files, request.adapters, &options).await?;
        let projector = Projector::open(request.files, request.projector, &options).await?;
        if let Some(projector) = &projector {
            options.takes_embeddings = true;
            options.reserve(projector.tensor_bytes());
        }
        let draft = OpenedDraft::open(request.draft_model, &opened.tokenizer, &options);
        let draft = Box::pin(draft).await?;
        if let Some(draft) = &draft {
            options.reserve(draft.needed_bytes(options));
        }
        Ok(OpenedFiles {
            opened,
            projector,
            draft,
            options,
        })
    }
}

/// The text model, which is started first, and the tower beside it, if there is one.
struct Text<'f, S> {
    checkpoint: &'f Checkpoint<S>,
    projector: Option<&'f Projector<S>>,
    options: LoadOptions,
}

/// A started text model, and what its start found out.
struct Started {
    model: Transformer,
    tower: Option<TowerPlan>,
    times: StartTimes,
    conditions: String,
    /// Whether the form of its kernels is one that an earlier load validated.
    is_kept: bool,
    sampler: Option<SamplerVerdict>,
}

impl<S: ByteSource> Text<'_, S> {
    /// Starts the model on the device, or on its fallback if no kernels compute correctly there.
    async fn start(
        &self,
        chosen: &mut ChosenDevice,
        known: KnownKernels<'_>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Started> {
        let (Checkpoint { gguf, source }, options) = (self.checkpoint, self.options);
        let types = matrix_types(gguf);
        loop {
            let device = &chosen.device;
            let tower = self.projector.map(|it| tower(it, gguf, options, device));
            let tower = tower.transpose()?;
            let conditions = conditions(device, options.needs(gguf, &types));
            let (tuning, sampler) = KernelChoice::tuning(known, &conditions);
            let started = start(device, tuning, gguf, source, options, &mut progress).await;
            match (started, chosen.fallback.take()) {
                (Err(error @ Error::NoDevice(_)), Some(cpu)) => {
                    *chosen = ChosenDevice::cpu_because(cpu, &error);
                }
                (started, _) => {
                    let (model, times) = started?;
                    return Ok(Started {
                        model,
                        tower,
                        times,
                        conditions,
                        is_kept: matches!(tuning, Tuning::Kept(_)),
                        sampler,
                    });
                }
            }
        }
    }

    fn report(
        &self,
        started: &Started,
        chosen: ChosenDevice,
        lora: Vec<LoraReport>,
        load_ms: LoadTimes,
    ) -> LoadReport {
        let model = &started.model;
        let limits = model.limits();
        let projector = self.projector.zip(started.tower.as_ref());
        LoadReport {
            device: chosen.device.report().clone(),
            device_reason: chosen.reason,
            variant: model.variant().name(),
            architecture: model.config().architecture.clone(),
            layers: model.config().layers.len(),
            file_bytes: self.checkpoint.source.size_bytes(),
            context_tokens: limits.context_tokens,
            kv_format: model.kv_format(),
            kv_pool_tokens: limits.page_count * limits.page_tokens,
            kv_bytes: model.kv_bytes(),
            vocab_size: limits.vocab_size,
            decode_dispatches: model.decode_dispatches(),
            projector: projector.map(|(it, plan)| it.report(plan)),
            draft_model: None,
            // Known once the switches are.
            tools: None,
            lora,
            load_ms,
        }
    }
}

impl Started {
    /// The reader of the model's images, if a tower stands beside it.
    fn images(&self, tokenizer: &Tokenizer) -> Result<Option<ImageReader>> {
        let format = self.tower.as_ref().map(|tower| tower.config().format());
        let images = format.map(|format| ImageReader::new(format, tokenizer));
        images.transpose()
    }

    /// Records the steps. Returns the time that this took, in milliseconds of the device's clock.
    async fn record(&mut self, device: &ComputeDevice) -> Result<f64> {
        let begun_ms = device.now_ms();
        match self.is_kept {
            true => self.model.warm_up_kept(self.sampler).await?,
            false => self.model.warm_up().await?,
        }
        Ok(device.now_ms() - begun_ms)
    }
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
