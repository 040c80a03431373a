//! Runs single steps of a decoder: as captured graphs where the device records them, else op by op.
//! Owns the KV cache and the inputs of steps.
//!
//! A step is a captured graph (`device/graph.rs`). For each number of rows (1, 8, 16, 32, 64, 128 and 256 for a chunk
//! of a prompt; 1, 2, 4 and 8 for a batch), the body, the logits and the greedy choice are recorded once; for one token
//! all three are a single graph. A replay resolves nothing, allocates nothing and uploads nothing: positions, number of
//! tokens and block tables are words of a buffer (`ops/step.rs`) that the step itself advances. While a graph is
//! recorded the memory pool must not grow, so scratch buffers are allocated before; a dry run records their sizes.
//!
//! A step has rows. Each row has its own position and block table, so a chunk of one prompt and a batch of several
//! sequences use the same kernels. Up to eight rows use the matrix-vector kernels, which read the weights once for all
//! of them; larger chunks use tiles.
//!
//! Longer than other files: the graphs of a step and the calls that replay them change together.

mod encode;
mod graphs;
mod greedy;
pub(super) mod mtp;
mod mtp_inputs;
mod readapt;
pub(super) mod record;
mod sampled;
pub(super) mod scratch;
pub(super) mod sizes;

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::{Device, Int, Tensor};

use self::{
    graphs::{DecodeGraphs, StepGraphs},
    mtp_inputs::MtpInputs,
    sizes::{
        BATCH_ROWS, CHOSEN_IDS, CHUNK_ROWS, DRAFT_ROWS, MANY_ROWS, MAX_BATCH, MAX_TOKENS,
        SCORE_TOKENS, WarmUp, chooses_on_device, warm_rows,
    },
};
use super::{
    config::ModelConfig,
    kv_reservation::{ENCODER_BATCH_TOKENS, KvReservation},
    layers::{decoder::Decoder, mixer::LayerMemory},
    slots::Slots,
};
use crate::{
    Error, Result,
    device::{ComputeDevice, Graph, read, read_all, upload_words},
    ops::{
        InPlace, Variant,
        copy_page::{copy_page, copy_state},
        rows::rows,
        sample::SamplerVerdict,
        score::score,
        step::{Segment, Step},
    },
};

/// The result of a step: its rows, and the residual stream `[rows, dim]`.
pub(super) struct Fed {
    pub(super) rows: usize,
    x: Tensor<2>,
}

/// The step that the last greedy choice prepared on the device.
struct Ready {
    pages: Vec<u32>,
    state: Option<u32>,
    position: usize,
    id: u32,
    /// Number of ids in the ring.
    chosen: usize,
}

/// A decoder with everything that its steps read and write.
pub(super) struct Steps {
    device: ComputeDevice,
    variant: Variant,
    decoder: Decoder,
    memory: Vec<LayerMemory>,
    /// Whether the decoder has adapters.
    has_adapters: bool,
    vocab: usize,
    step: Step,
    /// Rows of the residual stream that stand in for embeddings, as words; for models that take such rows.
    given: Option<InPlace>,
    /// Token ids that the graph of a step reads, per number of rows.
    ids: BTreeMap<usize, InPlace>,
    /// Ring of the ids chosen by greedy steps.
    chosen: InPlace,
    graphs: BTreeMap<usize, StepGraphs>,
    /// Whole greedy steps of one token.
    greedy: Option<DecodeGraphs>,
    ready: Option<Ready>,
    /// The inputs of the steps of the decoder's head, if it has one.
    mtp: Option<MtpInputs>,
    context_tokens: usize,
    /// Samplers on the device; none if the host chooses.
    slots: Option<Slots>,
    /// Whether its sampling kernels are right, once that is known.
    sampler_verdict: Option<SamplerVerdict>,
    /// Per number of rows: samples from the logits after every token and prepares the next step.
    sampled: BTreeMap<usize, Graph<()>>,
    /// Per number of rows: whole sampled steps.
    sampled_steps: BTreeMap<usize, DecodeGraphs>,
    /// WGSL of kernels that are compiled already, when adapters change.
    compiled: BTreeSet<String>,
    /// Whether kernels of prompts are compiled after the start, so that a recording may have to wait for them.
    compiles_late: bool,
}

impl Steps {
    /// Reserves the KV cache and all buffers that do not depend on the size of a step.
    pub fn new(
        device: ComputeDevice,
        variant: Variant,
        decoder: Decoder,
        given: Option<InPlace>,
        config: &ModelConfig,
        reservation: &KvReservation,
    ) -> Steps {
        let tensors = device.tensors();
        let memory = reservation.memories(tensors);
        let step = match config.is_causal {
            true => Step::new(MAX_TOKENS, MAX_BATCH * reservation.pages, tensors),
            false => {
                let tokens = reservation.context_tokens.max(ENCODER_BATCH_TOKENS);
                Step::new(tokens, reservation.pages, tensors)
            }
        };
        let has_head = decoder.mtp_head.is_some();
        Steps {
            mtp: has_head.then(|| MtpInputs::new(reservation.pages, tensors)),
            memory,
            given,
            has_adapters: false,
            vocab: config.token_ids,
            step,
            ids: BTreeMap::new(),
            chosen: InPlace::upload(vec![0; CHOSEN_IDS], tensors),
            graphs: BTreeMap::new(),
            greedy: None,
            ready: None,
            context_tokens: reservation.context_tokens,
            slots: None,
            sampler_verdict: None,
            sampled: BTreeMap::new(),
            sampled_steps: BTreeMap::new(),
            compiled: BTreeSet::new(),
            compiles_late: false,
            decoder,
            device,
            variant,
        }
    }

    pub fn device(&self) -> &ComputeDevice {
        &self.device
    }

    pub fn variant(&self) -> Variant {
        self.variant
    }

    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Whether rows may stand in for embeddings.
    pub fn takes_rows(&self) -> bool {
        self.given.is_some()
    }

    /// Whether a step needs rows of its tokens from the host, so that tokens that the device chooses have to be read before
    /// they are fed.
    pub fn needs_tokens(&self) -> bool {
        self.decoder.layer_inputs.is_some()
    }

    fn give_tokens(&mut self, tokens: &[u32]) {
        if let Some(inputs) = &mut self.decoder.layer_inputs {
            inputs.give(tokens);
        }
    }

    /// Sets the first of the rows that ids beyond the embedding table mean, `[rows, dim]`, for the next step. Further
    /// parts are added to the outputs of the first layers, one each.
    pub fn give_rows(&mut self, parts: &[Vec<f32>]) -> Result<()> {
        if parts.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let given = self.given.as_mut();
        let given = given.ok_or_else(|| Error::Internal("a model that takes no rows".into()))?;
        let part_words = given.get().dims()[0] / parts.len();
        for (part, rows) in parts.iter().enumerate() {
            let words = rows.iter().map(|value| value.to_bits()).collect();
            given.write(part * part_words, words);
        }
        Ok(())
    }

    /// Dispatches of a greedy step; 0 before it is recorded.
    pub fn greedy_dispatches(&self) -> usize {
        self.greedy.as_ref().map_or(0, |graphs| graphs.dispatches)
    }

    /// Records the steps of one sequence. What is `known` of the sampling kernels is believed.
    pub async fn warm_up(&mut self, which: WarmUp, known: Option<SamplerVerdict>) -> Result<()> {
        if self.decoder.is_whole {
            // Nothing is recorded; the kernels of the first text are compiled.
            let kernels = self.kernels(warm_rows(self.variant, WarmUp::Prompts));
            self.device.compile_ahead(kernels).await;
            return Ok(());
        }
        for &rows in warm_rows(self.variant, which) {
            self.record(rows).await?;
        }
        self.compiles_late = which == WarmUp::Decode;
        match self.device.recorder() {
            Some(_) if chooses_on_device(self.variant) && !self.needs_tokens() => {
                self.choose_on_device(known).await
            }
            _ => Ok(()),
        }
    }

    /// Starts compiling the kernels that a warm-up for decoding has left out; does not wait.
    pub fn compile_rest(&self) {
        let rows = warm_rows(self.variant, WarmUp::Prompts);
        let warm = warm_rows(self.variant, WarmUp::Decode).len();
        // It goes on when the future is dropped.
        drop(self.device.compile_ahead(self.kernels(&rows[warm..])));
    }

    /// Feeds tokens of one sequence, at most [`MAX_TOKENS`].
    pub async fn feed_chunk(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Result<Fed> {
        self.feed(&CHUNK_ROWS, &[segment], tokens).await
    }

    /// Same as [`feed_chunk`](Self::feed_chunk), with the kernels for many tokens however few there are.
    pub async fn feed_as_many(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Result<Fed> {
        self.feed(&MANY_ROWS, &[segment], tokens).await
    }

    /// Feeds tokens of one sequence, at most [`MAX_BATCH`], for logits after each of them.
    pub async fn feed_draft(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Result<Fed> {
        self.feed(&DRAFT_ROWS, &[segment], tokens).await
    }

    /// Feeds a token of each of several sequences, at most [`MAX_BATCH`].
    pub async fn feed_batch(&mut self, segments: &[Segment<'_>], tokens: &[u32]) -> Result<Fed> {
        self.feed(&BATCH_ROWS, segments, tokens).await
    }

    /// Feeds the rows of `segments` in the smallest of `sizes` that holds them. Suspends only to
    /// record a size for the first time, and on the CPU to let other work of the thread run.
    async fn feed(
        &mut self,
        sizes: &[usize],
        segments: &[Segment<'_>],
        tokens: &[u32],
    ) -> Result<Fed> {
        let fits = sizes.iter().find(|size| **size >= tokens.len());
        let rows = match (self.device.recorder(), fits) {
            (Some(_), Some(&size)) => size,
            (Some(_), None) => {
                return Err(Error::Internal(format!("a step of {}", tokens.len())));
            }
            (None, _) => tokens.len().max(sizes[0]),
        };
        self.record(rows).await?;
        self.device.give_turn().await;
        let ids = ids_of(&mut self.ids, rows, self.device.tensors());
        ids.write(0, tokens.to_vec());
        self.give_tokens(tokens);
        self.set_step(segments);
        self.feed_ready(rows)
    }

    /// Feeds tokens of one sequence without a graph; returns the logits `[tokens, vocab]`.
    pub fn launch(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Tensor<2> {
        self.set_step(&[segment]);
        self.give_tokens(tokens);
        let ids = upload(tokens, self.device.tensors());
        let x = self
            .decoder
            .forward(ids, None, &mut self.memory, &self.step);
        self.decoder.all_logits(x)
    }

    /// Logits `[1, vocab]` after the last token of a step.
    pub fn last_logits(&self, fed: Fed) -> Result<Tensor<2>> {
        match self.device.recorder() {
            Some(gpu) => {
                let last = &self.graphs[&fed.rows].last;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { last.replay(gpu)? };
                Ok(last.output().clone())
            }
            None => Ok(self.decoder.last_logits(fed.x, &self.step)),
        }
    }

    /// Logits `[sequences, vocab]` after each token of a batch.
    pub fn batch_logits(&self, fed: Fed, sequences: usize) -> Result<Tensor<2>> {
        let logits = match self.device.recorder() {
            Some(gpu) => {
                let every = self.graphs[&fed.rows].every.as_ref();
                let every = every.ok_or_else(|| Error::Internal("logits of no batch".into()))?;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { every.replay(gpu)? };
                every.output().clone()
            }
            None => self.decoder.all_logits(fed.x),
        };
        Ok(rows(logits, 0, sequences))
    }

    /// Scores of the tokens `next`, which follow those of a step, with the `top` best tokens:
    /// chunks of `ops::score` rows, padded at the end. Logits of [`SCORE_TOKENS`] tokens exist at a
    /// time.
    pub fn scores(&self, fed: &Fed, next: &[u32], top: usize) -> Vec<Tensor<2, Int>> {
        let parts = next.chunks(SCORE_TOKENS).enumerate().map(|(i, next)| {
            let first = i * SCORE_TOKENS;
            let count = (fed.rows - first).min(SCORE_TOKENS);
            let logits = self.decoder.all_logits(rows(fed.x.clone(), first, count));
            let mut next = next.to_vec();
            next.resize(count, 0);
            score(logits, upload(&next, self.device.tensors()), top)
        });
        parts.collect()
    }

    /// The residual stream after the output norm, `[tokens, dim]`, of the first `tokens` of a step.
    pub fn normed(&self, fed: &Fed, tokens: usize) -> Tensor<2> {
        self.decoder.normed(rows(fed.x.clone(), 0, tokens))
    }

    fn set_step(&mut self, segments: &[Segment<'_>]) {
        self.ready = None;
        self.step.set(segments);
    }

    /// Feeds the rows that are on the device: uploaded, or chosen by [`sample`](Self::sample).
    fn feed_ready(&mut self, rows: usize) -> Result<Fed> {
        let x = match self.device.recorder() {
            Some(gpu) => {
                let body = &self.graphs[&rows].body;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { body.replay(gpu)? };
                body.output().clone()
            }
            None => {
                let ids = ids_of(&mut self.ids, rows, self.device.tensors()).get();
                {
                    let given = self.given.as_ref();
                    self.decoder
                        .forward(ids, given, &mut self.memory, &self.step)
                }
            }
        };
        Ok(Fed { rows, x })
    }

    /// Copies a KV page in every layer.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        let pages = upload(&[from, to], self.device.tensors());
        for memory in &mut self.memory {
            if let LayerMemory::Kv(kv) = memory {
                copy_page(kv, pages.clone());
            }
        }
    }

    /// Copies a state in every recurrent layer.
    pub fn copy_state(&mut self, from: u32, to: u32) {
        // The step that was prepared may be of the sequence whose state is overwritten.
        self.ready = None;
        let slots = upload(&[from, to], self.device.tensors());
        for memory in &mut self.memory {
            if let LayerMemory::States(states) = memory {
                copy_state(states, slots.clone());
            }
        }
    }

    /// Reads floats back.
    pub async fn floats(&self, tensor: Tensor<2>) -> Result<Vec<f32>> {
        let values = read(tensor.into_dispatch()).await;
        values.map_err(|e| self.device.failure(e))
    }

    /// Reads several tensors of words back at once.
    pub async fn words<const D: usize>(
        &self,
        tensors: Vec<Tensor<D, Int>>,
    ) -> Result<Vec<Vec<u32>>> {
        self.device.give_turn().await;
        let words = read_all(tensors.into_iter().map(Tensor::into_dispatch).collect()).await;
        words.map_err(|e| self.device.failure(e))
    }
}

/// The ids that steps of this many rows read.
fn ids_of<'a>(
    ids: &'a mut BTreeMap<usize, InPlace>,
    rows: usize,
    device: &Device,
) -> &'a mut InPlace {
    ids.entry(rows)
        .or_insert_with(|| InPlace::upload(vec![0; rows], device))
}

fn upload(words: &[u32], device: &Device) -> Tensor<1, Int> {
    upload_words(words.to_vec(), [words.len()], device)
}
