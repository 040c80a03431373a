//! A decoder with its KV cache: warm-up, adapters, and its vision tower. `contract.rs` implements the engine's contract with
//! it: it divides the input of sequences into the steps that the device runs.

use std::collections::BTreeMap;

mod chunks;
mod contract;
mod draft_model;
mod embed;
mod feed;
mod greedy;
mod mtp;
mod rotary;
mod sampled;
mod trail;
mod verify;

use chunks::segment;
use trail::Trail;

use super::{
    config::{ModelConfig, Window},
    features::Features,
    image_rows::Vision,
    kv_reservation::KvReservation,
    layers::decoder::Decoder,
    load::{Plan, TowerPlan},
    lora::{self, Adapter},
    pace::Pace,
    slots::Slots,
    steps::{
        Steps,
        mtp::head_kernels,
        record::step_kernels,
        sizes::{MAX_TOKENS, WarmUp, chooses_on_device, warm_rows},
    },
};
use crate::{
    Error, Result,
    device::ComputeDevice,
    engine::SequenceMemory,
    ops::{
        InPlace, Kernel, Variant,
        kv_memory::KvFormat,
        sample::{self, SamplerVerdict},
        step::Rotary,
    },
    weights::ByteSource,
};

/// Reads timed at warm-up, while the device is idle.
const READS: usize = 3;

/// A decoder with its KV cache, ready to run.
pub struct Transformer {
    steps: Steps,
    config: ModelConfig,
    matrices: BTreeMap<String, [usize; 2]>,
    reservation: KvReservation,
    pace: Pace,
    /// Makes rows of images.
    vision: Option<Vision>,
    features: Features,
    /// Whether its head or its draft model is used.
    drafts: bool,
    trail: Trail,
    draft_model: Option<Box<DraftModel>>,
}

/// A decoder that guesses the tokens of another one.
pub type DraftModel = draft_model::DraftModel<Transformer>;

impl Transformer {
    /// Reserves the KV cache.
    pub(crate) fn new(
        device: ComputeDevice,
        variant: Variant,
        decoder: Decoder,
        plan: Plan,
    ) -> Transformer {
        let given = given_rows(&plan, &device);
        let Plan {
            config,
            matrices,
            reservation,
            ..
        } = plan;
        Transformer {
            steps: Steps::new(device, variant, decoder, given, &config, &reservation),
            config,
            matrices,
            reservation,
            pace: Pace::default(),
            vision: None,
            features: Features::default(),
            drafts: true,
            trail: Trail::default(),
            draft_model: None,
        }
    }

    /// The kernels that [`warm_up`](Self::warm_up) launches on a model with the shapes of
    /// `decoder`, to be compiled before its weights are loaded.
    pub(crate) fn first_kernels(
        decoder: &Decoder,
        plan: &Plan,
        device: &ComputeDevice,
        variant: Variant,
    ) -> Vec<Kernel> {
        Self::warm_kernels(decoder, plan, device, variant, WarmUp::Prompts)
    }

    /// Same as [`first_kernels`](Self::first_kernels), for [`warm_up_kept`](Self::warm_up_kept).
    pub(crate) fn decode_kernels(
        decoder: &Decoder,
        plan: &Plan,
        device: &ComputeDevice,
        variant: Variant,
    ) -> Vec<Kernel> {
        Self::warm_kernels(decoder, plan, device, variant, WarmUp::Decode)
    }

    fn warm_kernels(
        decoder: &Decoder,
        plan: &Plan,
        device: &ComputeDevice,
        variant: Variant,
        warm_up: WarmUp,
    ) -> Vec<Kernel> {
        let memory = plan.reservation.outlines(device.tensors());
        let given = given_rows(plan, device);
        let rows = warm_rows(variant, warm_up);
        let mut kernels = step_kernels(decoder, given.as_ref(), &memory, device.tensors(), rows);
        if warm_up == WarmUp::Prompts {
            kernels.extend(head_kernels(decoder, &memory, device.tensors()));
        }
        if chooses_on_device(variant) && !decoder.is_whole {
            let shape = Slots::shape(plan.config.token_ids, plan.reservation.context_tokens);
            kernels.extend(sample::kernels(shape));
        }
        kernels
    }

    /// The hyperparameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Checks that it can be fed the images of a tower.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] if rows of an image see each other and do not fit into a step or a window.
    pub(crate) fn check_vision(&self, plan: &TowerPlan) -> Result<()> {
        let rows = plan.config.rows();
        let windows = self.config.layers.iter().filter_map(|layer| layer.window);
        let most = windows.map(Window::tokens).fold(MAX_TOKENS, usize::min);
        match plan.config.tower.is_seen_whole && rows > most {
            false => Ok(()),
            true => Err(Error::UnsupportedModel(format!(
                "a projector file whose images have {rows} rows that see each other, more than {most}"
            ))),
        }
    }

    /// Lets it take images. It must have been planned for embeddings.
    pub(crate) fn set_vision(&mut self, vision: Vision) {
        self.vision = Some(vision);
    }

    /// Its vision tower.
    pub fn vision(&self) -> Option<&Vision> {
        self.vision.as_ref()
    }

    /// Same as [`vision`](Self::vision), to run it.
    pub fn vision_mut(&mut self) -> Option<&mut Vision> {
        self.vision.as_mut()
    }

    /// Whether tokens are drafted if it has a head or a draft model; they are unless this says otherwise. Tokens are the
    /// same.
    pub fn set_drafts(&mut self, drafts: bool) {
        self.drafts = drafts;
    }

    /// Lets a smaller model with the same token ids draft, in place of its head if it has one.
    pub fn set_draft_model(&mut self, model: DraftModel) {
        self.draft_model = Some(Box::new(model));
    }

    /// The device on which it computes.
    pub fn device(&self) -> &ComputeDevice {
        self.steps.device()
    }

    /// The variant of its kernels.
    pub fn variant(&self) -> Variant {
        self.steps.variant()
    }

    /// The format of the KV cache.
    pub fn kv_format(&self) -> KvFormat {
        self.reservation.format
    }

    /// Bytes of the KV cache in all layers.
    pub fn kv_bytes(&self) -> u64 {
        self.reservation.bytes()
    }

    /// Dispatches of one greedy decode step, once it is recorded; 0 on a device without graphs.
    pub fn decode_dispatches(&self) -> usize {
        self.steps.greedy_dispatches()
    }

    /// Records the steps of a single sequence, which compiles their pipelines, so that the first
    /// request does not wait. Steps of a batch are recorded with the first batch of their size.
    ///
    /// # Errors
    /// Fails when a kernel is refused.
    pub async fn warm_up(&mut self) -> Result<()> {
        self.warm_up_steps(WarmUp::Prompts, None).await
    }

    /// Same as [`warm_up`](Self::warm_up), for kernels that an earlier load validated: records the steps of a single token
    /// only, and believes what is `known` of the sampling kernels. A prompt waits for its own kernels, unless
    /// [`compile_rest`](Self::compile_rest) has come first.
    ///
    /// # Errors
    /// Same as [`warm_up`](Self::warm_up).
    pub async fn warm_up_kept(&mut self, known: Option<SamplerVerdict>) -> Result<()> {
        self.warm_up_steps(WarmUp::Decode, known).await
    }

    /// Starts compiling what [`warm_up_kept`](Self::warm_up_kept) has left out; does not wait.
    pub fn compile_rest(&self) {
        self.steps.compile_rest();
    }

    /// The result of validating the sampling kernels; `None` if the host samples.
    pub fn sampler_verdict(&self) -> Option<SamplerVerdict> {
        self.steps.sampler_verdict()
    }

    async fn warm_up_steps(&mut self, which: WarmUp, known: Option<SamplerVerdict>) -> Result<()> {
        self.steps.warm_up(which, known).await?;
        self.device().sync().await?;
        if !self.config.is_causal {
            return Ok(());
        }
        for _ in 0..READS {
            let start_ms = self.device().now_ms();
            self.steps.chosen().await?;
            let read_ms = self.device().now_ms() - start_ms;
            self.pace.note_read(read_ms);
        }
        Ok(())
    }

    /// Lets the device choose tokens, if its sampling kernels pass validation.
    /// [`warm_up`](Self::warm_up) does so unless the host is faster.
    ///
    /// # Errors
    /// Fails when a kernel is refused.
    pub async fn choose_on_device(&mut self) -> Result<()> {
        self.steps.choose_on_device(None).await
    }

    /// Sets the adapters, each multiplied by its scale, in place of the previous ones. No adapters
    /// restore the model as it was loaded, to the last bit. Graphs are recorded again.
    ///
    /// No sequence may be running: K and V computed before belong to other weights.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] and [`Error::InvalidModelFile`] with the file and the tensor that does
    /// not fit this model; [`Error::OutOfMemory`]; [`Error::Read`] from the adapters' sources. The model is
    /// unchanged then.
    pub async fn set_adapters<S: ByteSource>(
        &mut self,
        adapters: &[(&Adapter<S>, f32)],
    ) -> Result<()> {
        let base = lora::BaseModel {
            decoder: self.steps.decoder(),
            config: &self.config,
            matrices: &self.matrices,
            device: self.device(),
            max_binding_bytes: self.device().max_binding_bytes(),
        };
        let adapted = lora::adapted(&base, adapters).await?;
        self.steps.readapt(adapted).await
    }

    /// Logits `[tokens.len(), vocab]` after every token, for tests.
    ///
    /// # Errors
    /// Same as [`CausalModel::step`](crate::engine::CausalModel::step).
    pub async fn feed_all(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
    ) -> Result<Vec<f32>> {
        let mut logits = Vec::with_capacity(tokens.len() * self.config.token_ids);
        for chunk in tokens.chunks(MAX_TOKENS) {
            self.check(memory, chunk.len())?;
            let segment = segment(memory, chunk.len(), Rotary::default());
            let rows = self.steps.launch(segment, chunk);
            logits.extend(self.steps.floats(rows).await?);
            memory.len_tokens += chunk.len();
        }
        Ok(logits)
    }

    /// Enqueues `steps` (at least one) greedy decode steps starting with `token`, without waiting for the
    /// chosen tokens. For benchmarks: the time until [`ComputeDevice::flush`] returns is the CPU's share of
    /// decoding. On the CPU backend the steps are done when it returns.
    ///
    /// # Errors
    /// Same as [`CausalModel::step`](crate::engine::CausalModel::step).
    pub async fn enqueue_greedy(
        &mut self,
        memory: &mut SequenceMemory,
        token: u32,
        steps: usize,
    ) -> Result<()> {
        self.check(memory, steps)?;
        self.steps.prepare_greedy().await?;
        let fed = self.feed_chunks(memory, &[token]).await?;
        self.steps.choose(fed)?;
        self.steps.greedy(steps - 1)?;
        memory.len_tokens += steps - 1;
        Ok(())
    }
}

/// A buffer for the rows that one step may be given, if the model takes any.
fn given_rows(plan: &Plan, device: &ComputeDevice) -> Option<InPlace> {
    let words = MAX_TOKENS * plan.config.dim * (1 + plan.config.deepstack_layers);
    let upload = || InPlace::upload(vec![0; words], device.tensors());
    plan.takes_embeddings.then(upload)
}
