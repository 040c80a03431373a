//! Batches whose next tokens are chosen and fed by samplers on the device.

use burn::tensor::Tensor;

use super::{Steps, graphs::DecodeGraphs, ids_of, sizes::BATCH_ROWS};
use crate::{
    Error, Result,
    device::Graph,
    model::slots::Slots,
    ops::sample::{SamplerVerdict, sample, samples},
};

impl Steps {
    /// Whether there are samplers on the device.
    pub fn samples(&self) -> bool {
        self.slots.is_some()
    }

    /// The result of validating the sampling kernels; `None` if they were not needed.
    pub fn sampler_verdict(&self) -> Option<SamplerVerdict> {
        self.sampler_verdict
    }

    /// Creates samplers on the device, if the host need not know the tokens and the kernels of [`sample`](Self::sample) pass validation
    /// there. What is `known` of these kernels is believed.
    pub async fn choose_on_device(&mut self, known: Option<SamplerVerdict>) -> Result<()> {
        if self.needs_tokens() {
            return Ok(());
        }
        let slots = Slots::new(self.vocab, self.context_tokens, self.device.tensors());
        let shape = slots.memory.shape();
        let is_right = match known {
            Some(known) if known.shape == shape => known.is_right,
            _ => samples(&self.device, shape).await?,
        };
        self.sampler_verdict = Some(SamplerVerdict { shape, is_right });
        self.slots = is_right.then_some(slots);
        match is_right {
            true => self.prepare_sampled(1).await,
            false => Ok(()),
        }
    }

    /// Records what [`sample`](Self::sample) replays after a batch of this many sequences.
    pub async fn prepare_sampled(&mut self, sequences: usize) -> Result<()> {
        let rows = BATCH_ROWS.iter().find(|rows| **rows >= sequences);
        let (Some(_), Some(&rows)) = (self.device.recorder(), rows) else {
            return Ok(());
        };
        self.record(rows).await?;
        if self.sampled.contains_key(&rows) {
            return Ok(());
        }
        let (Some(gpu), Some(slots)) = (self.device.recorder(), &self.slots) else {
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
        let graph = Graph::record(gpu, || sample(logits.clone())).await?;
        let steps = DecodeGraphs::record(gpu, || {
            let fed = ids.get();
            let x = self
                .decoder
                .forward(fed, None, &mut self.memory.clone(), &self.step);
            sample(self.decoder.all_logits(x));
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

    /// Lets the rows' samplers choose from the `logits` of a batch of `rows` rows; the next step of
    /// the batch is ready then.
    pub fn sample(&mut self, rows: usize, logits: Tensor<2>) -> Result<()> {
        match (self.device.recorder(), self.sampled.get(&rows)) {
            (Some(gpu), Some(sampled)) => {
                // SAFETY: `self` owns every tensor the graph was recorded with.
                unsafe { sampled.replay(gpu) }
            }
            (Some(_), None) => Err(Error::Internal("a choice before its graph".into())),
            (None, _) => {
                let ids = ids_of(&mut self.ids, rows, self.device.tensors());
                let slots = self.slots.as_mut();
                let slots = slots.ok_or_else(|| Error::Internal("no samplers".into()))?;
                sample(logits, &mut slots.memory, ids, &mut self.step);
                Ok(())
            }
        }
    }

    /// Whole sampled steps, which continue from the tokens that [`sample`](Self::sample) chose.
    pub fn sampled_steps(&mut self, rows: usize, steps: usize) -> Result<()> {
        match (self.device.recorder(), self.sampled_steps.get(&rows)) {
            (Some(gpu), Some(graphs)) => {
                // SAFETY: `self` owns every tensor the graphs were recorded with.
                unsafe { graphs.replay(gpu, steps) }
            }
            (Some(_), None) => Err(Error::Internal("a sampled step before its graph".into())),
            (None, _) => {
                for _ in 0..steps {
                    let fed = self.feed_ready(rows)?;
                    let logits = self.decoder.all_logits(fed.x);
                    self.sample(rows, logits)?;
                }
                Ok(())
            }
        }
    }
}
