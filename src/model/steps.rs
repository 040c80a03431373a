//! Runs single steps of a Llama: on the GPU as captured graphs, on the CPU directly. Owns the KV
//! memory and what steps read; knows neither sequences' lengths nor why a step is due.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Int, Tensor, TensorData, Transaction};

use super::{Compute, LlamaConfig, llama::Llama, slots::Slots};
use crate::{
    Error, Result,
    device::{Gpu, Graph},
    ops::{
        argmax::argmax,
        copy_page::copy_page,
        matvec,
        rows::rows,
        sample::{sample, scratch_bytes},
        score::score,
        self_test,
        step::{KvMemory, PAGE_TOKENS, Segment, Step},
        write_words,
    },
};

/// Most tokens of a step.
pub(super) const MAX_TOKENS: usize = 256;
/// Most sequences of a batch.
pub(super) const MAX_BATCH: usize = matvec::MAX_TOKENS;
/// Ids that greedy steps collect on the device before the host reads them.
pub(super) const CHOSEN_IDS: usize = 64;
/// Rows of captured steps. One sequence's chunk takes the first that holds it: a size that is not
/// among them would only cost pipelines.
const CHUNK_ROWS: [usize; 7] = [1, 8, 16, 32, 64, 128, MAX_TOKENS];
const BATCH_ROWS: [usize; 4] = [1, 2, 4, MAX_BATCH];
/// Tokens whose logits are there at once while a prompt is scored.
const SCORE_TOKENS: usize = 32;

/// The captured steps of one number of rows.
struct StepGraphs {
    /// Feeds the rows; gives the residual stream.
    body: Graph<Tensor<2>>,
    /// Logits after the step's last token.
    last: Graph<Tensor<2>>,
    /// Logits after every token, for sizes that batches have.
    every: Option<Graph<Tensor<2>>>,
    /// Chooses from `last`'s logits and prepares the next one-token step.
    choose: Graph<()>,
}

/// Decode steps of one captured graph: each replay is a submit, which costs as much as many
/// dispatches.
const GRAPH_STEPS: usize = 4;

/// Whole decode steps, from the ids and positions that the last choice left on the device.
struct DecodeGraphs {
    one: Graph<()>,
    several: Graph<()>,
}

impl DecodeGraphs {
    async fn record(gpu: &Gpu, sizes_bytes: &[usize], mut step: impl FnMut()) -> Result<Self> {
        let one = Graph::record(gpu, sizes_bytes, &mut step).await?;
        let several = || (0..GRAPH_STEPS).for_each(|_| step());
        let several = Graph::record(gpu, sizes_bytes, several).await?;
        Ok(Self { one, several })
    }

    /// # Safety
    /// As [`Graph::replay`].
    unsafe fn replay(&self, gpu: &Gpu, steps: usize) -> Result<()> {
        for _ in 0..steps / GRAPH_STEPS {
            // SAFETY: forwarded to the caller.
            unsafe { self.several.replay(gpu)? };
        }
        for _ in 0..steps % GRAPH_STEPS {
            // SAFETY: forwarded to the caller.
            unsafe { self.one.replay(gpu)? };
        }
        Ok(())
    }
}

/// What the last greedy choice left on the device: a step that is ready to run.
struct Ready {
    pages: Vec<u32>,
    position: usize,
    id: u32,
    /// Ids in the ring since it was last begun.
    chosen: usize,
}

/// A step that was fed: its rows, and the residual stream `[rows, dim]` after them.
pub(super) struct Fed {
    pub(super) rows: usize,
    x: Tensor<2>,
}

/// A model and all that its steps read and write.
pub(super) struct Steps {
    compute: Compute,
    llama: Llama,
    kv: Vec<KvMemory>,
    kv_dim: usize,
    /// Elements of a row of each of the step's tensors but the logits.
    widths: [usize; 5],
    vocab: usize,
    /// A page that no sequence owns: graphs are recorded against it.
    spare_page: u32,
    step: Step,
    /// Token ids of a step, per number of rows: what its graph reads.
    ids: BTreeMap<usize, Option<Tensor<1, Int>>>,
    /// Ids chosen by greedy steps, a ring.
    chosen: Option<Tensor<1, Int>>,
    graphs: BTreeMap<usize, StepGraphs>,
    /// Whole greedy steps of one token.
    greedy: Option<DecodeGraphs>,
    ready: Option<Ready>,
    context_tokens: usize,
    /// Samplers on the device; none if the host chooses.
    slots: Option<Slots>,
    /// Per number of rows: samples from the logits after every token and prepares the next step.
    sampled: BTreeMap<usize, Graph<()>>,
    /// Per number of rows: whole sampled steps.
    sampled_steps: BTreeMap<usize, DecodeGraphs>,
}

impl Steps {
    /// Reserves KV memory of `pages` pages, and one more.
    pub fn new(compute: Compute, llama: Llama, config: &LlamaConfig, pages: usize) -> Steps {
        let device = compute.device();
        let kv_dim = config.kv_dim();
        let kv = (0..config.layers).map(|_| KvMemory::new(pages + 1, kv_dim, device));
        Steps {
            kv: kv.collect(),
            kv_dim,
            widths: [
                config.dim,
                config.q_dim(),
                kv_dim,
                config.q_dim() + 2 * kv_dim,
                config.ffn_dim,
            ],
            vocab: config.token_ids,
            spare_page: pages as u32,
            step: Step::new(MAX_TOKENS, MAX_BATCH * (pages + 1), device),
            ids: BTreeMap::new(),
            chosen: Some(upload(&[0; CHOSEN_IDS], device)),
            graphs: BTreeMap::new(),
            greedy: None,
            ready: None,
            context_tokens: pages * PAGE_TOKENS,
            slots: None,
            sampled: BTreeMap::new(),
            sampled_steps: BTreeMap::new(),
            llama,
            compute,
        }
    }

    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    pub fn llama(&self) -> &Llama {
        &self.llama
    }

    /// Compiles the pipelines of one sequence's steps: larger chunks run those of the third size.
    pub async fn warm_up(&mut self) -> Result<()> {
        for rows in &CHUNK_ROWS[..3] {
            self.record(*rows).await?;
        }
        // Where barriers are dear the host chooses more quickly.
        let on_device =
            matches!(&self.compute, Compute::Gpu { variant, .. } if !variant.barrier_free);
        match on_device {
            true => self.choose_on_device().await,
            false => Ok(()),
        }
    }

    /// Whether there are samplers on the device.
    pub fn samples(&self) -> bool {
        self.slots.is_some()
    }

    /// Feeds tokens of one sequence, at most [`MAX_TOKENS`].
    pub async fn feed_chunk(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Result<Fed> {
        self.feed(&CHUNK_ROWS, &[segment], tokens).await
    }

    /// Feeds a token of each of several sequences, at most [`MAX_BATCH`].
    pub async fn feed_batch(&mut self, segments: &[Segment<'_>], tokens: &[u32]) -> Result<Fed> {
        self.feed(&BATCH_ROWS, segments, tokens).await
    }

    /// Feeds the rows of `segments` in the smallest of `sizes` that holds them. Suspends only to
    /// record a size for the first time.
    async fn feed(
        &mut self,
        sizes: &[usize],
        segments: &[Segment<'_>],
        tokens: &[u32],
    ) -> Result<Fed> {
        let fits = sizes.iter().find(|size| **size >= tokens.len());
        let rows = match (&self.compute, fits) {
            (Compute::Gpu { .. }, Some(&size)) => size,
            (Compute::Gpu { .. }, None) => {
                return Err(Error::Internal(format!("a step of {}", tokens.len())));
            }
            (Compute::Cpu(_), _) => tokens.len(),
        };
        self.record(rows).await?;
        let ids = ids_of(&mut self.ids, rows, self.compute.device());
        let taken = ids.take().expect("put back by every op that takes it");
        *ids = Some(write_words(taken, 0, tokens.to_vec()));
        self.set_step(segments);
        self.feed_ready(rows)
    }

    /// Feeds tokens of one sequence without a graph; gives the logits `[tokens, vocab]` after each.
    pub fn launch(&mut self, segment: Segment<'_>, tokens: &[u32]) -> Tensor<2> {
        self.set_step(&[segment]);
        let ids = upload(tokens, self.compute.device());
        let x = self.llama.forward(ids, &mut self.kv, &self.step);
        self.llama.all_logits(x)
    }

    /// Logits `[1, vocab]` after the last token of the step just fed.
    pub fn last_logits(&self, fed: Fed) -> Result<Tensor<2>> {
        match &self.compute {
            Compute::Gpu { gpu, .. } => {
                let last = &self.graphs[&fed.rows].last;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { last.replay(gpu)? };
                Ok(last.output().clone())
            }
            Compute::Cpu(_) => Ok(self.llama.last_logits(fed.x, &self.step)),
        }
    }

    /// Logits `[sequences, vocab]` after each token of the batch just fed.
    pub fn batch_logits(&self, fed: Fed, sequences: usize) -> Result<Tensor<2>> {
        let logits = match &self.compute {
            Compute::Gpu { gpu, .. } => {
                let every = self.graphs[&fed.rows].every.as_ref();
                let every = every.ok_or_else(|| Error::Internal("logits of no batch".into()))?;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { every.replay(gpu)? };
                every.output().clone()
            }
            Compute::Cpu(_) => self.llama.all_logits(fed.x),
        };
        Ok(rows(logits, 0, sequences))
    }

    /// Scores of the tokens `next` that follow those of the step just fed, one each, with the `top`
    /// best: parts of `ops::score` rows, padded at the end. The logits of [`SCORE_TOKENS`] tokens
    /// are there at a time.
    pub fn scores(&self, fed: &Fed, next: &[u32], top: usize) -> Vec<Tensor<2, Int>> {
        let parts = next.chunks(SCORE_TOKENS).enumerate().map(|(i, next)| {
            let first = i * SCORE_TOKENS;
            let count = (fed.rows - first).min(SCORE_TOKENS);
            let logits = self.llama.all_logits(rows(fed.x.clone(), first, count));
            let mut next = next.to_vec();
            next.resize(count, 0);
            score(logits, upload(&next, self.compute.device()), top)
        });
        parts.collect()
    }

    /// Chooses greedily after the step just fed; the next one-token step is ready then.
    pub fn choose(&mut self, fed: Fed) -> Result<()> {
        let rows = fed.rows;
        let logits = self.last_logits(fed)?;
        match &self.compute {
            Compute::Gpu { gpu, .. } => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { self.graphs[&rows].choose.replay(gpu) }
            }
            Compute::Cpu(device) => {
                let ids = ids_of(&mut self.ids, 1, device);
                argmax(logits, ids, &mut self.step, &mut self.chosen);
                Ok(())
            }
        }
    }

    /// Greedy steps on what the last choice left on the device; nothing is uploaded.
    pub fn greedy(&mut self, steps: usize) -> Result<()> {
        match (&self.compute, &self.greedy) {
            (Compute::Gpu { gpu, .. }, Some(greedy)) => {
                // SAFETY: `self` owns every tensor the graphs were recorded with.
                unsafe { greedy.replay(gpu, steps) }
            }
            (Compute::Gpu { .. }, None) => {
                Err(Error::Internal("a greedy step before its graph".into()))
            }
            (Compute::Cpu(device), _) => {
                for _ in 0..steps {
                    let ids = ids_of(&mut self.ids, 1, device);
                    let fed = ids.clone().expect("put back by every op that takes it");
                    let x = self.llama.forward(fed, &mut self.kv, &self.step);
                    let logits = self.llama.last_logits(x, &self.step);
                    argmax(logits, ids, &mut self.step, &mut self.chosen);
                }
                Ok(())
            }
        }
    }

    /// Notes that `id` at the segment's position was chosen by the last greedy step, and that the
    /// ring holds so many ids.
    pub fn note_ready(&mut self, segment: Segment<'_>, id: u32, chosen: usize) {
        self.ready = Some(Ready {
            pages: segment.pages.to_vec(),
            position: segment.position,
            id,
            chosen,
        });
    }

    /// Whether the device is ready to feed `id` to that sequence: then how many ids are in the ring.
    /// What was noted is forgotten: the caller goes on from it, perhaps not to the end.
    pub fn take_ready(&mut self, segment: Segment<'_>, id: u32) -> Option<usize> {
        let ready = self.ready.take().filter(|ready| {
            ready.id == id && ready.position == segment.position && ready.pages == segment.pages
        });
        ready.map(|ready| ready.chosen)
    }

    fn set_step(&mut self, segments: &[Segment<'_>]) {
        self.ready = None;
        self.step.set(segments);
    }

    /// A step that harms nobody: recording runs it for real.
    fn set_spare_step(&mut self) {
        let pages = [self.spare_page];
        self.set_step(&[Segment {
            position: 0,
            tokens: 1,
            pages: &pages,
        }]);
    }

    /// Records what greedy steps replay.
    pub async fn prepare_greedy(&mut self) -> Result<()> {
        self.record(1).await
    }

    /// The ring of ids that were chosen since the last feed.
    pub async fn chosen(&self) -> Result<Vec<u32>> {
        let ring = self.chosen.clone();
        let ring = ring.expect("put back by every op that takes it");
        let words = self.words(Transaction::default().register(ring)).await?;
        words
            .into_iter()
            .next()
            .ok_or_else(|| Error::Internal("no ids were read".into()))
    }

    /// Makes samplers on the device, if [`sample`](Self::sample) proves to choose rightly there.
    pub async fn choose_on_device(&mut self) -> Result<()> {
        let slots = Slots::new(self.vocab, self.context_tokens, self.compute.device());
        let is_right = match &self.compute {
            Compute::Gpu { gpu, .. } => self_test::samples(gpu, slots.memory.shape()).await?,
            Compute::Cpu(_) => true,
        };
        self.slots = is_right.then_some(slots);
        match is_right {
            true => self.prepare_sampled(1).await,
            false => Ok(()),
        }
    }

    /// Makes ready for [`sample`](Self::sample) after batches of so many sequences.
    pub async fn prepare_sampled(&mut self, sequences: usize) -> Result<()> {
        // Recording runs the kernels for real: no row has a sampler then.
        self.slots()?.memory.set_rows(&[]);
        let rows = BATCH_ROWS.iter().find(|rows| **rows >= sequences);
        let (Compute::Gpu { .. }, Some(&rows)) = (&self.compute, rows) else {
            return Ok(());
        };
        self.record(rows).await?;
        if self.sampled.contains_key(&rows) {
            return Ok(());
        }
        self.set_spare_step();
        let (Compute::Gpu { gpu, .. }, Some(slots)) = (&self.compute, &self.slots) else {
            return Ok(());
        };
        let every = self.graphs[&rows].every.as_ref();
        let every = every.ok_or_else(|| Error::Internal("logits of no batch".into()))?;
        let logits = every.output().clone();
        let ids = ids_of(&mut self.ids, rows, gpu.device()).clone();
        let sample = |logits: Tensor<2>| {
            let (mut ids, mut step) = (ids.clone(), self.step.clone());
            sample(logits, &mut slots.memory.clone(), &mut ids, &mut step);
        };
        let scratch = scratch_bytes(rows, self.vocab);
        let graph = Graph::record(gpu, &scratch, || sample(logits.clone())).await?;
        let sizes = [&self.step_sizes(rows)[..], &scratch].concat();
        let steps = DecodeGraphs::record(gpu, &sizes, || {
            let fed = ids.clone().expect("put back by every op that takes it");
            let x = self.llama.forward(fed, &mut self.kv.clone(), &self.step);
            sample(self.llama.all_logits(x));
        });
        let steps = steps.await?;
        self.sampled.insert(rows, graph);
        self.sampled_steps.insert(rows, steps);
        Ok(())
    }

    /// The samplers on the device.
    pub fn slots(&mut self) -> Result<&mut Slots> {
        let slots = self.slots.as_mut();
        slots.ok_or_else(|| Error::Internal("samplers on a device that has none".into()))
    }

    /// Chooses by the rows' samplers from the `logits` after a batch of `rows` rows; the next step
    /// of the batch is ready then.
    pub fn sample(&mut self, rows: usize, logits: Tensor<2>) -> Result<()> {
        match (&self.compute, self.sampled.get(&rows)) {
            (Compute::Gpu { gpu, .. }, Some(sampled)) => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { sampled.replay(gpu) }
            }
            (Compute::Gpu { .. }, None) => Err(Error::Internal("a choice before its graph".into())),
            (Compute::Cpu(device), _) => {
                let ids = ids_of(&mut self.ids, rows, device);
                let slots = self.slots.as_mut();
                let slots = slots.ok_or_else(|| Error::Internal("no samplers".into()))?;
                sample(logits, &mut slots.memory, ids, &mut self.step);
                Ok(())
            }
        }
    }

    /// Whole sampled steps on what [`sample`](Self::sample) left on the device.
    pub fn sampled_steps(&mut self, rows: usize, steps: usize) -> Result<()> {
        match (&self.compute, self.sampled_steps.get(&rows)) {
            (Compute::Gpu { gpu, .. }, Some(graphs)) => {
                // SAFETY: `self` owns every tensor the graphs were recorded with.
                unsafe { graphs.replay(gpu, steps) }
            }
            (Compute::Gpu { .. }, None) => {
                Err(Error::Internal("a sampled step before its graph".into()))
            }
            (Compute::Cpu(_), _) => {
                for _ in 0..steps {
                    let fed = self.feed_ready(rows)?;
                    let logits = self.llama.all_logits(fed.x);
                    self.sample(rows, logits)?;
                }
                Ok(())
            }
        }
    }

    /// Sizes in bytes of the tensors of a step with logits after every token.
    fn step_sizes(&self, rows: usize) -> Vec<usize> {
        let widths = self.widths.iter().chain([&self.vocab]);
        widths.map(|width| 4 * rows * width).collect()
    }

    /// Feeds the rows that lie ready on the device: set, or chosen by [`sample`](Self::sample).
    fn feed_ready(&mut self, rows: usize) -> Result<Fed> {
        let x = match &self.compute {
            Compute::Gpu { gpu, .. } => {
                let body = &self.graphs[&rows].body;
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { body.replay(gpu)? };
                body.output().clone()
            }
            Compute::Cpu(device) => {
                let ids = ids_of(&mut self.ids, rows, device).clone();
                let ids = ids.expect("put back by every op that takes it");
                self.llama.forward(ids, &mut self.kv, &self.step)
            }
        };
        Ok(Fed { rows, x })
    }

    /// Copies a page of every layer.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        let pages = upload(&[from, to], self.compute.device());
        for kv in &mut self.kv {
            copy_page(kv, pages.clone(), self.kv_dim);
        }
    }

    /// Reads floats back.
    pub async fn floats(&self, tensor: Tensor<2>) -> Result<Vec<f32>> {
        let data = tensor
            .into_data_async()
            .await
            .map_err(|e| self.compute.failure(format!("{e:?}")))?;
        data.try_into_vec()
            .map_err(|e| Error::Internal(format!("{e:?}")))
    }

    /// Reads several tensors of words back at once.
    pub async fn words(&self, tensors: Transaction) -> Result<Vec<Vec<u32>>> {
        let read = tensors.execute_async().await;
        let read = read.map_err(|e| self.compute.failure(format!("{e:?}")))?;
        let words = read.into_iter().map(|data| {
            data.try_into_vec()
                .map_err(|e| Error::Internal(format!("{e:?}")))
        });
        words.collect()
    }

    /// Records the graphs of a number of rows, once.
    async fn record(&mut self, rows: usize) -> Result<()> {
        if matches!(self.compute, Compute::Cpu(_)) || self.graphs.contains_key(&rows) {
            return Ok(());
        }
        self.set_spare_step();
        let Compute::Gpu { gpu, .. } = &self.compute else {
            return Ok(());
        };
        let device = gpu.device();
        let ids = ids_of(&mut self.ids, rows, device).clone();
        let ids = ids.expect("put back by every op that takes it");
        let (llama, step) = (&self.llama, &self.step);
        let body_sizes = self.widths.map(|width| 4 * rows * width);
        let logits_sizes = |rows: usize| [4 * rows * self.widths[0], 4 * rows * self.vocab];
        let body = Graph::record(gpu, &body_sizes, || {
            let mut kv = self.kv.clone();
            llama.forward(ids.clone(), &mut kv, step)
        })
        .await?;
        let x = body.output().clone();
        let last =
            Graph::record(gpu, &logits_sizes(1), || llama.last_logits(x.clone(), step)).await?;
        let every = match BATCH_ROWS.contains(&rows) {
            true => {
                let sizes = logits_sizes(rows);
                Some(Graph::record(gpu, &sizes, || llama.all_logits(x.clone())).await?)
            }
            false => None,
        };
        let logits = last.output().clone();
        let next = ids_of(&mut self.ids, 1, device).clone();
        let choose = Graph::record(gpu, &[], || {
            let (mut ids, mut step) = (next.clone(), step.clone());
            argmax(
                logits.clone(),
                &mut ids,
                &mut step,
                &mut self.chosen.clone(),
            );
        })
        .await?;
        if rows == 1 {
            let sizes = self.step_sizes(1);
            let greedy = DecodeGraphs::record(gpu, &sizes, || {
                let (mut kv, mut ids, mut step) = (self.kv.clone(), next.clone(), step.clone());
                let x = llama.forward(ids.clone().expect("just cloned"), &mut kv, &step);
                let logits = llama.last_logits(x, &step);
                argmax(logits, &mut ids, &mut step, &mut self.chosen.clone());
            });
            self.greedy = Some(greedy.await?);
        }
        let graphs = StepGraphs {
            body,
            last,
            every,
            choose,
        };
        self.graphs.insert(rows, graphs);
        Ok(())
    }
}

/// The ids that steps of a number of rows read.
fn ids_of<'a>(
    ids: &'a mut BTreeMap<usize, Option<Tensor<1, Int>>>,
    rows: usize,
    device: &Device,
) -> &'a mut Option<Tensor<1, Int>> {
    ids.entry(rows)
        .or_insert_with(|| Some(upload(&vec![0; rows], device)))
}

fn upload(words: &[u32], device: &Device) -> Tensor<1, Int> {
    let data = TensorData::new(words.to_vec(), [words.len()]);
    Tensor::from_data(data, (device, DType::U32))
}
