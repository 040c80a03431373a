//! Runs a Llama for the engine: steps of one token and of chunks, on the GPU as captured graphs, on
//! the CPU directly. Owns the KV memory; knows pages, not who uses them.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::{CausalModel, Compute, LlamaConfig, SequenceKv, llama::Llama};
use crate::{
    Error, Result,
    device::Graph,
    ops::{
        argmax::{INVALID_TOKEN, argmax},
        step::{KvMemory, PAGE_TOKENS, Step},
        write_words,
    },
};

/// Tokens of the chunks that prefill is captured for; the last is the largest step there is.
const CHUNK_TOKENS: [usize; 4] = [1, 16, 64, 256];
/// Ids that greedy steps collect on the device before the host reads them.
const CHOSEN_IDS: usize = 64;
/// Context reserved where the caller does not say, in tokens.
const DEFAULT_CONTEXT_TOKENS: usize = 4096;

/// The captured steps of one chunk size.
struct ChunkGraphs {
    /// Feeds the chunk; gives the residual stream.
    body: Graph<Tensor<2>>,
    /// Logits after the chunk's last token.
    head: Graph<Tensor<2>>,
    /// Chooses from `head`'s logits and prepares the next one-token step.
    choose: Graph<()>,
}

/// A model with its KV memory, ready to run.
pub struct Transformer {
    compute: Compute,
    llama: Llama,
    config: LlamaConfig,
    context_tokens: usize,
    kv: Vec<KvMemory>,
    step: Step,
    /// Token ids of a step, per chunk size: what its graph reads.
    ids: BTreeMap<usize, Option<Tensor<1, Int>>>,
    /// Ids chosen by greedy steps, a ring.
    chosen: Option<Tensor<1, Int>>,
    graphs: BTreeMap<usize, ChunkGraphs>,
    /// A whole greedy step: body, head and choice of one token.
    greedy: Option<Graph<()>>,
}

impl Transformer {
    /// Reserves KV memory for `context_tokens` tokens.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if a layer's KV memory exceeds what a kernel can see.
    pub fn new(
        compute: Compute,
        llama: Llama,
        config: LlamaConfig,
        context_tokens: Option<usize>,
    ) -> Result<Transformer> {
        let wanted = context_tokens.unwrap_or(DEFAULT_CONTEXT_TOKENS);
        let context_tokens = wanted.min(config.context_tokens).max(1);
        let pages = context_tokens.div_ceil(PAGE_TOKENS);
        // One page more: graphs are recorded against it, so that no sequence's memory changes.
        let layer_bytes = ((pages + 1) * 2 * PAGE_TOKENS * config.kv_dim() * 4) as u64;
        if layer_bytes > compute.max_binding_bytes() {
            return Err(Error::OutOfMemory(format!(
                "a context of {context_tokens} tokens needs {layer_bytes} bytes per layer, and \
                 this device's kernels see {} at most",
                compute.max_binding_bytes()
            )));
        }
        let device = compute.device();
        let kv = (0..config.layers)
            .map(|_| KvMemory::new(pages + 1, config.kv_dim(), device))
            .collect();
        Ok(Transformer {
            step: Step::new(pages + 1, device),
            kv,
            ids: BTreeMap::new(),
            chosen: Some(zeros(CHOSEN_IDS, device)),
            graphs: BTreeMap::new(),
            greedy: None,
            llama,
            config,
            context_tokens,
            compute,
        })
    }

    /// The hyperparameters.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// Where it computes.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// Dispatches of one greedy decode step.
    pub fn decode_dispatches(&self) -> usize {
        let blocks = self.llama.blocks.iter();
        let layers: usize = blocks
            .map(|block| 5 + block.attention.attn_qkv.count())
            .sum();
        // Embedding, output projection, argmax.
        layers + 3
    }

    /// Compiles all pipelines, so that the first request does not wait: larger chunks run those of
    /// the smallest one.
    ///
    /// # Errors
    /// When a kernel is refused.
    pub async fn warm_up(&mut self) -> Result<()> {
        self.record(CHUNK_TOKENS[0]).await?;
        self.record(CHUNK_TOKENS[1]).await
    }

    /// Logits `[tokens.len(), vocab]` after every token, for scoring and tests.
    ///
    /// # Errors
    /// As [`CausalModel::feed`].
    pub async fn feed_all(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut logits = Vec::with_capacity(tokens.len() * self.config.token_ids);
        for chunk in tokens.chunks(CHUNK_TOKENS[3]) {
            self.check(kv, chunk.len())?;
            self.step.set(kv.len_tokens, chunk.len(), &kv.pages);
            let ids = upload(chunk, self.compute.device());
            let x = self.llama.forward(ids, &mut self.kv, &self.step);
            logits.extend(self.floats(self.llama.all_logits(x)).await?);
            kv.len_tokens += chunk.len();
        }
        Ok(logits)
    }

    /// Feeds all tokens; gives the chunk size and logits tensor of the last step, if wanted.
    async fn run(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        want_logits: bool,
    ) -> Result<Option<(usize, Tensor<2>)>> {
        let mut last = None;
        let chunks = tokens.len().div_ceil(CHUNK_TOKENS[3]);
        for (i, chunk) in tokens.chunks(CHUNK_TOKENS[3]).enumerate() {
            self.check(kv, chunk.len())?;
            let size = match self.compute {
                Compute::Gpu { .. } => chunk_size(chunk.len()),
                Compute::Cpu(_) => chunk.len(),
            };
            self.record(size).await?;
            self.set_ids(size, chunk);
            self.step.set(kv.len_tokens, chunk.len(), &kv.pages);
            let with_logits = want_logits && i + 1 == chunks;
            match &self.compute {
                Compute::Gpu { gpu, .. } => {
                    let graphs = &self.graphs[&size];
                    // SAFETY: `self` owns every tensor the graphs were recorded with.
                    unsafe { graphs.body.replay(gpu)? };
                    if with_logits {
                        // SAFETY: as above.
                        unsafe { graphs.head.replay(gpu)? };
                        last = Some((size, graphs.head.output().clone()));
                    }
                }
                Compute::Cpu(_) => {
                    let ids = self.ids[&size].clone().expect("set above");
                    let x = self.llama.forward(ids, &mut self.kv, &self.step);
                    if with_logits {
                        last = Some((size, self.llama.last_logits(x, &self.step)));
                    }
                }
            }
            kv.len_tokens += chunk.len();
        }
        Ok(last)
    }

    /// Feeds all tokens; gives the chunk size and logits tensor of the last step.
    async fn run_to_logits(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
    ) -> Result<(usize, Tensor<2>)> {
        let last = self.run(kv, tokens, true).await?;
        last.ok_or_else(|| Error::Internal("a step without tokens".into()))
    }

    /// Chooses greedily from the logits of the last step; the next one-token step is ready then.
    fn choose(&mut self, size: usize, logits: Tensor<2>) -> Result<()> {
        match &self.compute {
            Compute::Gpu { gpu, .. } => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { self.graphs[&size].choose.replay(gpu) }
            }
            Compute::Cpu(_) => {
                let ids = one_token_ids(&mut self.ids, self.compute.device());
                argmax(logits, ids, &mut self.step, &mut self.chosen);
                Ok(())
            }
        }
    }

    /// Records the graphs of a chunk size, once.
    async fn record(&mut self, size: usize) -> Result<()> {
        let Compute::Gpu { gpu, .. } = &self.compute else {
            return Ok(());
        };
        if self.graphs.contains_key(&size) {
            return Ok(());
        }
        // Recording runs the step for real: against the spare page, where it harms nobody.
        let spare = self.context_tokens.div_ceil(PAGE_TOKENS) as u32;
        self.step.set(0, 1, &[spare]);
        let device = gpu.device();
        let ids = self
            .ids
            .entry(size)
            .or_insert_with(|| Some(zeros(size, device)));
        let ids = ids.clone().expect("put back by every op that takes it");
        let (llama, step) = (&self.llama, &self.step);
        let body = Graph::record(gpu, || {
            let mut kv = self.kv.clone();
            llama.forward(ids.clone(), &mut kv, step)
        })
        .await?;
        let x = body.output().clone();
        let head = Graph::record(gpu, || llama.last_logits(x.clone(), step)).await?;
        let logits = head.output().clone();
        let next = one_token_ids(&mut self.ids, device).clone();
        let choose = Graph::record(gpu, || {
            let (mut ids, mut step) = (next.clone(), step.clone());
            argmax(
                logits.clone(),
                &mut ids,
                &mut step,
                &mut self.chosen.clone(),
            );
        })
        .await?;
        if size == CHUNK_TOKENS[0] {
            let greedy = Graph::record(gpu, || {
                let (mut kv, mut ids, mut step) = (self.kv.clone(), next.clone(), step.clone());
                let x = llama.forward(ids.clone().expect("just cloned"), &mut kv, &step);
                let logits = llama.last_logits(x, &step);
                argmax(logits, &mut ids, &mut step, &mut self.chosen.clone());
            });
            self.greedy = Some(greedy.await?);
        }
        self.graphs.insert(size, ChunkGraphs { body, head, choose });
        Ok(())
    }

    fn set_ids(&mut self, size: usize, tokens: &[u32]) {
        let device = self.compute.device();
        let ids = self
            .ids
            .entry(size)
            .or_insert_with(|| Some(zeros(size, device)));
        let taken = ids.take().expect("put back by every op that takes it");
        *ids = Some(write_words(taken, 0, tokens.to_vec()));
    }

    fn check(&self, kv: &SequenceKv, tokens: usize) -> Result<()> {
        let end = kv.len_tokens + tokens;
        if end > self.context_tokens || end > kv.pages.len() * PAGE_TOKENS {
            return Err(Error::Internal(format!(
                "a step to {end} tokens with {} pages and a context of {}",
                kv.pages.len(),
                self.context_tokens
            )));
        }
        Ok(())
    }

    async fn floats(&self, tensor: Tensor<2>) -> Result<Vec<f32>> {
        let data = tensor
            .into_data_async()
            .await
            .map_err(|e| self.compute.failure(format!("{e:?}")))?;
        data.try_into_vec()
            .map_err(|e| Error::Internal(format!("{e:?}")))
    }
}

impl CausalModel for Transformer {
    fn vocab_size(&self) -> usize {
        self.config.token_ids
    }

    fn context_tokens(&self) -> usize {
        self.context_tokens
    }

    fn page_tokens(&self) -> usize {
        PAGE_TOKENS
    }

    fn page_count(&self) -> usize {
        self.context_tokens.div_ceil(PAGE_TOKENS)
    }

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.run(kv, tokens, false).await.map(|_| ())
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        let (_, logits) = self.run_to_logits(kv, tokens).await?;
        self.floats(logits).await
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        self.record(CHUNK_TOKENS[0]).await?;
        let mut chosen = Vec::with_capacity(steps);
        let mut feed = tokens.to_vec();
        while chosen.len() < steps {
            let count = (steps - chosen.len()).min(CHOSEN_IDS);
            let (size, logits) = self.run_to_logits(kv, &feed).await?;
            self.check(kv, count - 1)?;
            self.choose(size, logits)?;
            for _ in 1..count {
                self.greedy_step(kv)?;
            }
            let ring = self
                .chosen
                .clone()
                .expect("put back by every op that takes it");
            let ring = ring
                .into_data_async()
                .await
                .map_err(|e| self.compute.failure(format!("{e:?}")))?;
            let ids: Vec<u32> = ring
                .try_into_vec()
                .map_err(|e| Error::Internal(format!("{e:?}")))?;
            chosen.extend(&ids[..count]);
            feed = vec![ids[count - 1]];
        }
        if let Some(at) = chosen.iter().position(|&id| id == INVALID_TOKEN) {
            return Err(Error::InvalidLogits { position: at });
        }
        Ok(chosen)
    }
}

impl Transformer {
    /// Enqueues `steps` (at least one) greedy decode steps from `token` on, without waiting for
    /// what they choose: what that takes until [`Compute::flush`] is through is the CPU's share of
    /// decoding, for benchmarks. On the CPU backend the steps are done when it returns.
    ///
    /// # Errors
    /// As [`CausalModel::feed`].
    pub async fn enqueue_greedy(
        &mut self,
        kv: &mut SequenceKv,
        token: u32,
        steps: usize,
    ) -> Result<()> {
        self.check(kv, steps)?;
        let (size, logits) = self.run_to_logits(kv, &[token]).await?;
        self.choose(size, logits)?;
        for _ in 1..steps {
            self.greedy_step(kv)?;
        }
        Ok(())
    }

    /// One greedy step on what the last choice left on the device; nothing is uploaded.
    fn greedy_step(&mut self, kv: &mut SequenceKv) -> Result<()> {
        kv.len_tokens += 1;
        match (&self.compute, &self.greedy) {
            (Compute::Gpu { gpu, .. }, Some(greedy)) => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { greedy.replay(gpu) }
            }
            (Compute::Gpu { .. }, None) => {
                Err(Error::Internal("a greedy step before its graph".into()))
            }
            (Compute::Cpu(device), _) => {
                let ids = one_token_ids(&mut self.ids, device);
                let fed = ids.clone().expect("put back by every op that takes it");
                let x = self.llama.forward(fed, &mut self.kv, &self.step);
                let logits = self.llama.last_logits(x, &self.step);
                argmax(logits, ids, &mut self.step, &mut self.chosen);
                Ok(())
            }
        }
    }
}

/// The smallest captured size that holds `tokens` tokens.
fn chunk_size(tokens: usize) -> usize {
    let size = CHUNK_TOKENS.into_iter().find(|&size| size >= tokens);
    size.expect("chunks are cut to the largest size")
}

fn one_token_ids<'a>(
    ids: &'a mut BTreeMap<usize, Option<Tensor<1, Int>>>,
    device: &Device,
) -> &'a mut Option<Tensor<1, Int>> {
    ids.entry(CHUNK_TOKENS[0])
        .or_insert_with(|| Some(zeros(1, device)))
}

fn zeros(len: usize, device: &Device) -> Tensor<1, Int> {
    upload(&vec![0; len], device)
}

fn upload(words: &[u32], device: &Device) -> Tensor<1, Int> {
    let data = TensorData::new(words.to_vec(), [words.len()]);
    Tensor::from_data(data, (device, DType::U32))
}
