//! Records the captured graphs of steps, and tells beforehand which kernels that takes.

use std::collections::BTreeSet;

use burn::tensor::{Device, Tensor};

use super::{BATCH_ROWS, CHOSEN_IDS, Steps, ids_of, upload, warm_rows};
use crate::{
    Result,
    device::{Gpu, Graph},
    model::layers::decoder::Decoder,
    ops::{
        Kernel, Variant,
        argmax::argmax,
        attention_split::{self, partial_elements},
        collect,
        kv_memory::KvMemory,
        launches,
        step::Step,
    },
};

/// The kernels that the first graphs of a model of the form of `decoder` launch, whatever its weights
/// hold.
pub fn first_kernels(
    decoder: &Decoder,
    kv: &[KvMemory],
    variant: Variant,
    device: &Device,
) -> Vec<Kernel> {
    let mut kv = kv.to_vec();
    let mut step = Step::new(1, 1, device);
    let mut chosen = Some(upload(&[0; CHOSEN_IDS], device));
    collect(|| {
        for &rows in warm_rows(variant) {
            let mut ids = Some(upload(&vec![0; rows], device));
            let x = decoder.forward(upload(&vec![0; rows], device), &mut kv, &step);
            let logits = decoder.last_logits(x.clone(), &step);
            if BATCH_ROWS.contains(&rows) {
                decoder.all_logits(x);
            }
            argmax(logits, &mut ids, &mut step, &mut chosen);
        }
    })
}

/// The captured steps of one number of rows.
pub(super) struct StepGraphs {
    /// Feeds the rows; gives the residual stream.
    pub(super) body: Graph<Tensor<2>>,
    /// Logits after the step's last token.
    pub(super) last: Graph<Tensor<2>>,
    /// Logits after every token, for sizes that batches have.
    pub(super) every: Option<Graph<Tensor<2>>>,
    /// Chooses from `last`'s logits and prepares the next one-token step.
    pub(super) choose: Graph<()>,
}

/// Decode steps of one captured graph: each replay is a submit, which costs as much as many
/// dispatches.
const GRAPH_STEPS: usize = 4;

/// Whole decode steps, from the ids and positions that the last choice left on the device.
pub(super) struct DecodeGraphs {
    /// Of one step.
    pub(super) dispatches: usize,
    one: Graph<()>,
    several: Graph<()>,
}

impl DecodeGraphs {
    pub(super) async fn record(
        gpu: &Gpu,
        sizes_bytes: &[usize],
        mut step: impl FnMut(),
    ) -> Result<Self> {
        let before = launches();
        let one = Graph::record(gpu, sizes_bytes, &mut step).await?;
        let dispatches = (launches() - before) as usize;
        let several = || (0..GRAPH_STEPS).for_each(|_| step());
        let several = Graph::record(gpu, sizes_bytes, several).await?;
        Ok(Self {
            dispatches,
            one,
            several,
        })
    }

    /// # Safety
    /// As [`Graph::replay`].
    pub(super) unsafe fn replay(&self, gpu: &Gpu, steps: usize) -> Result<()> {
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

impl Steps {
    /// Records the graphs of a number of rows, once.
    pub(super) async fn record(&mut self, rows: usize) -> Result<()> {
        let Some(gpu) = self.device.recorder() else {
            return Ok(());
        };
        if self.graphs.contains_key(&rows) {
            return Ok(());
        }
        let device = gpu.device();
        let ids = ids_of(&mut self.ids, rows, device).clone();
        let ids = ids.expect("put back by every op that takes it");
        let (decoder, step) = (&self.decoder, &self.step);
        let body_sizes = self.body_sizes(rows);
        let logits_sizes = |rows: usize| {
            let mut sizes = vec![4 * rows * self.widths[0], 4 * rows * self.vocab];
            sizes.extend(self.delta_sizes(rows));
            sizes
        };
        let body = Graph::record(gpu, &body_sizes, || {
            let mut kv = self.kv.clone();
            decoder.forward(ids.clone(), &mut kv, step)
        })
        .await?;
        let x = body.output().clone();
        let last = Graph::record(gpu, &logits_sizes(1), || {
            decoder.last_logits(x.clone(), step)
        })
        .await?;
        let every = match BATCH_ROWS.contains(&rows) {
            true => {
                let sizes = logits_sizes(rows);
                Some(Graph::record(gpu, &sizes, || decoder.all_logits(x.clone())).await?)
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
                let x = decoder.forward(ids.clone().expect("just cloned"), &mut kv, &step);
                let logits = decoder.last_logits(x, &step);
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

    /// Sizes in bytes of the tensors of a step with logits after every token.
    pub(super) fn step_sizes(&self, rows: usize) -> Vec<usize> {
        let mut sizes = self.body_sizes(rows);
        sizes.push(4 * rows * self.vocab);
        sizes
    }

    /// Sizes in bytes of the tensors of a step without logits.
    fn body_sizes(&self, rows: usize) -> Vec<usize> {
        let mut sizes = self.widths.map(|width| 4 * rows * width).to_vec();
        sizes.extend(self.delta_sizes(rows));
        let inner = self.decoder.blocks.iter();
        let inner = inner.flat_map(|block| block.feed_forward.sizes_bytes(rows));
        sizes.extend(inner.collect::<BTreeSet<usize>>());
        if attention_split::serves(rows, self.variant) {
            let partials = self.decoder.blocks.iter().zip(&self.kv).map(|(block, kv)| {
                let shape = block.attention.shape;
                4 * rows * partial_elements(shape, kv.context_tokens())
            });
            let partials: BTreeSet<usize> = partials.collect();
            sizes.extend(partials);
        }
        sizes
    }
}
