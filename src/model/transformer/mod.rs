//! Implements the engine's contract with a decoder: divides the input of sequences into the steps that the
//! device runs.

use std::collections::BTreeMap;
use std::rc::Rc;

mod chunks;
mod draft_model;
mod embed;
mod greedy;
mod mtp;
mod rotary;
mod sampled;
mod verify;

use chunks::{chunks, image_cuts, segment};
pub use draft_model::DraftModel;
use mtp::Trail;
use rotary::RotaryPositions;

use super::{
    config::ModelConfig,
    features::Features,
    image_rows::Vision,
    kv_reservation::KvReservation,
    layers::decoder::Decoder,
    load::{Plan, TowerPlan},
    lora::{self, Adapter},
    pace::Pace,
    slots::Slots,
    steps::{
        Fed, Steps,
        mtp::head_kernels,
        record::step_kernels,
        sizes::{MAX_BATCH, MAX_TOKENS, WarmUp, chooses_on_device, warm_rows},
    },
};
use crate::{
    Error, Result,
    device::ComputeDevice,
    engine::{
        CausalModel, Chooser, Input, KnownText, MemoryCopy, ModelLimits, Row, SequenceMemory,
        StepOutput,
        generation::{Content, Embeddings},
    },
    ops::{
        InPlace, Kernel, Variant,
        kv_memory::KvFormat,
        matvec,
        sample::{self, SamplerVerdict, accepts},
        score::{parse, score_words},
        step::{PAGE_TOKENS, Rotary, Segment},
    },
    sample::{SamplingParams, ScoreRequest, TokenScore},
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
        let most = windows.fold(MAX_TOKENS, usize::min);
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

    /// Where it computes.
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
    /// When a kernel is refused.
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
    /// When a kernel is refused.
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
    /// Same as [`CausalModel::step`].
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
    /// Same as [`CausalModel::step`].
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

    /// Feeds tokens and embeddings of one sequence; returns the last step.
    async fn feed_input(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<Fed> {
        let mut fed = None;
        let mut start = 0;
        let whole_images = self.whole_images();
        // A text between images may be short. The kernels depend on where the prompt ends, not on where images are.
        let is_many = input.ids().len() > matvec::MAX_TOKENS;
        let cuts = match whole_images {
            true => image_cuts(input)?,
            false => {
                let ends = chunks(input.ids()).scan(0, |end, chunk| {
                    *end += chunk.len();
                    Some((*end, false))
                });
                ends.collect()
            }
        };
        for (end, is_image) in cuts {
            let range = start..end;
            start = end;
            self.check(memory, range.len())?;
            let mut ids = input.ids()[range.clone()].to_vec();
            let (dim, wide) = (self.config.dim, self.row_width());
            let mut parts = vec![Vec::new(); wide / dim];
            let input = input.part(range);
            for embeddings in input.embeddings() {
                // Ids beyond the embedding table are rows that are given.
                let first = self.config.vocab + parts[0].len() / dim;
                let given = first as u32..;
                ids[embeddings.at]
                    .iter_mut()
                    .zip(given)
                    .for_each(|(id, row)| *id = row);
                let values = self.rows_of(embeddings.embeddings).await?;
                let width = values.len() / embeddings.embeddings.positions;
                let rows = embeddings.rows.start * width..embeddings.rows.end * width;
                for row in values[rows].chunks_exact(width) {
                    let mut values = row.chunks_exact(dim);
                    for part in &mut parts {
                        match values.next() {
                            Some(values) => part.extend_from_slice(values),
                            None => part.resize(part.len() + dim, 0.0),
                        }
                    }
                }
            }
            let is_text = input.embeddings().next().is_none();
            if is_text && ids.len() > 1 {
                self.remember_next(memory, ids[0])?;
            }
            self.steps.give_rows(&parts)?;
            let rotary = self.rotary(&input);
            let segment = Segment {
                is_seen_whole: is_image,
                ..segment(memory, ids.len(), rotary.of_segment())
            };
            let step = match whole_images && (is_many || is_image) {
                true => self.steps.feed_as_many(segment, &ids).await?,
                false => self.steps.feed_chunk(segment, &ids).await?,
            };
            if is_text {
                self.remember_fed(memory, &ids, &step)?;
            }
            fed = Some(step);
            memory.len_tokens += ids.len();
        }
        fed.ok_or_else(|| Error::Internal("a step without tokens".into()))
    }

    /// Whether the rows of an image attend to each other in the text model.
    fn whole_images(&self) -> bool {
        let vision = self.vision.as_ref();
        vision.is_some_and(|vision| vision.config().tower.is_seen_whole)
    }

    /// Values of an image's row: those of the embedding, and those of the layers that take some.
    fn row_width(&self) -> usize {
        self.config.dim * (1 + self.config.deepstack_layers)
    }

    /// The rotary positions of an input.
    fn rotary(&self, input: &Input) -> RotaryPositions {
        let by_parts = self.config.rope().is_some_and(|rope| rope.parts.is_some());
        let vision = self.vision.as_ref().filter(|_| by_parts);
        RotaryPositions::new(input, vision.and_then(|it| it.config().row_side()))
    }

    /// The rows of embeddings, each of [`row_width`](Self::row_width) values, or of those of the embedding alone.
    async fn rows_of(&mut self, embeddings: &Embeddings) -> Result<Rc<[f32]>> {
        let rows = match &embeddings.content {
            Content::Rows(values) => values.as_slice().into(),
            Content::Pixels(pixels) => match self.features.get(embeddings.key) {
                Some(rows) => rows,
                None => {
                    let vision = self.vision.as_mut();
                    let vision =
                        vision.ok_or_else(|| Error::Internal("images without a tower".into()))?;
                    let rows: Rc<[f32]> = vision.encode(pixels).await?.into();
                    self.features.put(embeddings.key, rows.clone());
                    rows
                }
            },
        };
        let widths = [self.row_width(), self.config.dim];
        match widths.map(|width| embeddings.positions * width) {
            sizes if embeddings.positions > 0 && sizes.contains(&rows.len()) => Ok(rows),
            _ => Err(Error::Internal("embeddings of another size".into())),
        }
    }

    /// Feeds all tokens of one sequence; returns the last step.
    async fn feed_chunks(&mut self, memory: &mut SequenceMemory, tokens: &[u32]) -> Result<Fed> {
        let mut fed = None;
        for chunk in chunks(tokens) {
            self.check(memory, chunk.len())?;
            let segment = segment(memory, chunk.len(), Rotary::default());
            fed = Some(self.steps.feed_chunk(segment, chunk).await?);
            memory.len_tokens += chunk.len();
        }
        fed.ok_or_else(|| Error::Internal("a step without tokens".into()))
    }

    /// Enqueues the next token of each row; suspends only to record a batch of this size for the
    /// first time.
    async fn feed_batch(&mut self, rows: &[Row<'_>]) -> Result<Fed> {
        let tokens: Vec<u32> = rows.iter().map(|row| row.input.ids()[0]).collect();
        let rotary: Vec<_> = rows.iter().map(|row| self.rotary(&row.input)).collect();
        let segments = rows.iter().zip(&rotary);
        let segments = segments.map(|(row, it)| segment(row.memory, 1, it.of_segment()));
        let segments: Vec<Segment> = segments.collect();
        self.steps.feed_batch(&segments, &tokens).await
    }

    /// An error unless the rows are a batch whose pages cover `steps` tokens more.
    fn check_batch(&self, rows: &[Row<'_>], steps: usize) -> Result<()> {
        if rows.is_empty() || rows.len() > MAX_BATCH {
            return Err(Error::Internal(format!("a batch of {}", rows.len())));
        }
        if rows.iter().any(|row| row.input.ids().len() != 1) {
            return Err(Error::Internal("a batch of several tokens per row".into()));
        }
        rows.iter()
            .try_for_each(|row| self.check(row.memory, steps))
    }

    fn check(&self, memory: &SequenceMemory, tokens: usize) -> Result<()> {
        if !self.config.is_causal {
            return Err(Error::Internal("an encoder feeds no sequences".into()));
        }
        let end = memory.len_tokens + tokens;
        let context_tokens = self.reservation.context_tokens;
        if end > context_tokens || end > memory.pages.len() * PAGE_TOKENS {
            return Err(Error::Internal(format!(
                "a step to {end} tokens with {} pages and a context of {context_tokens}",
                memory.pages.len(),
            )));
        }
        let slots = self.reservation.states.slots;
        if slots > 0 && memory.state.is_none_or(|slot| slot as usize >= slots) {
            return Err(Error::Internal(format!(
                "a step with the state {:?} of {slots}",
                memory.state
            )));
        }
        Ok(())
    }
}

/// A buffer for the rows that one step may be given, if the model takes any.
fn given_rows(plan: &Plan, device: &ComputeDevice) -> Option<InPlace> {
    let words = MAX_TOKENS * plan.config.dim * (1 + plan.config.deepstack_layers);
    let upload = || InPlace::upload(vec![0; words], device.tensors());
    plan.takes_embeddings.then(upload)
}

impl CausalModel for Transformer {
    fn limits(&self) -> ModelLimits {
        ModelLimits {
            vocab_size: self.config.token_ids,
            context_tokens: self.reservation.context_tokens,
            page_tokens: PAGE_TOKENS,
            page_count: self.reservation.pages,
            max_batch: MAX_BATCH,
            few_tokens: matvec::MAX_TOKENS,
            state_slots: self.reservation.states.slots,
            embedding_width: self.steps.takes_rows().then_some(self.config.dim),
            whole_images: self.whole_images(),
        }
    }

    fn samples(&self, params: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.steps.samples() && accepts(params, score, self.config.token_ids)
    }

    fn run_ahead_steps(&self) -> usize {
        self.pace.run_ahead_steps()
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        // Boxed here and below, so that the future of an engine stays small: it is polled on the stack.
        Box::pin(self.feed_input(memory, input)).await.map(|_| ())
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        match (rows, chooser) {
            (
                rows,
                Chooser::Samplers {
                    steps,
                    samplers,
                    masks,
                },
            ) => {
                let chosen = Box::pin(self.sampled(rows, samplers, steps, masks)).await?;
                Ok(StepOutput::Chosen(chosen))
            }
            ([row], Chooser::Greedy { steps }) => {
                let chosen = Box::pin(self.greedy(row, steps)).await?;
                Ok(StepOutput::Chosen(vec![chosen]))
            }
            (_, Chooser::Greedy { .. }) => {
                Err(Error::Internal("greedy steps of several rows".into()))
            }
            ([row], Chooser::Host) => {
                let fed = Box::pin(self.feed_input(row.memory, row.input)).await?;
                let logits = self.steps.last_logits(fed)?;
                Ok(StepOutput::Logits(vec![self.steps.floats(logits).await?]))
            }
            (rows, Chooser::Host) => {
                self.check_batch(rows, 1)?;
                let fed = self.feed_batch(rows).await?;
                let logits = self.steps.batch_logits(fed, rows.len())?;
                let logits = self.steps.floats(logits).await?;
                for row in rows.iter_mut() {
                    row.memory.len_tokens += 1;
                }
                let rows = logits.chunks_exact(self.config.token_ids);
                Ok(StepOutput::Logits(rows.map(<[f32]>::to_vec).collect()))
            }
        }
    }

    fn verified_rows(&self) -> usize {
        MAX_BATCH
    }

    fn drafts(&self) -> bool {
        self.drafts && (self.draft_model.is_some() || self.steps.has_head())
    }

    async fn prepare_draft(&mut self, text: KnownText<'_>) -> Result<()> {
        match &mut self.draft_model {
            Some(model) => Box::pin(model.catch_up(text)).await,
            None => Ok(()),
        }
    }

    async fn draft(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        match &mut self.draft_model {
            Some(model) => Box::pin(model.draft(text, count)).await,
            None => Box::pin(self.drafted(memory, text, count)).await,
        }
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        Box::pin(self.verified(row, chooser)).await
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        let vocab = self.config.token_ids;
        if next.len() != tokens.len() || next.iter().any(|id| *id as usize >= vocab) {
            return Err(Error::Internal("scores of no such tokens".into()));
        }
        let top = top.min(vocab);
        let first = memory.len_tokens;
        let mut parts = vec![];
        for (tokens, next) in chunks(tokens).zip(chunks(next)) {
            let fed = self.feed_chunks(memory, tokens).await?;
            parts.extend(self.steps.scores(&fed, next, top));
        }
        let parts = self.steps.words(parts).await?;
        let rows = parts
            .iter()
            .flat_map(|part| part.chunks_exact(score_words(top)));
        let scores = rows.zip(next).enumerate().map(|(i, (row, &id))| {
            let position = first + i + 1;
            let score = parse(row).ok_or(Error::InvalidLogits { position })?;
            Ok(TokenScore {
                id,
                logprob: score.logprob,
                raw_logprob: score.logprob,
                top: score.top,
            })
        });
        scores.collect()
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        match copy {
            MemoryCopy::Page { from, to } if (from.max(to) as usize) < self.reservation.pages => {
                self.steps.copy_page(from, to);
                Ok(())
            }
            MemoryCopy::State { from, to }
                if (from.max(to) as usize) < self.reservation.states.slots =>
            {
                self.steps.copy_state(from, to);
                Ok(())
            }
            other => Err(Error::Internal(format!("no memory for {other:?}"))),
        }
    }
}
