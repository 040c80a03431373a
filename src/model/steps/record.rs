//! Records the captured graphs of steps, and lists beforehand which kernels they launch.

use std::collections::BTreeSet;

use burn::tensor::Device;

use super::{
    Steps,
    graphs::{DecodeGraphs, StepGraphs},
    ids_of,
    sizes::{BATCH_ROWS, CHOSEN_IDS, encoder_rows},
    upload,
};
use crate::{
    Result,
    device::{Gpu, Graph},
    model::layers::{decoder::Decoder, mixer::LayerMemory},
    ops::{InPlace, Kernel, Variant, argmax::argmax, dry_run, step::Step},
};

/// The kernels that the graphs of steps with these numbers of rows launch, of a model with the shapes of
/// `decoder`, whose steps may read rows `given`. Its weights are not read.
pub fn step_kernels(
    decoder: &Decoder,
    given: Option<&InPlace>,
    memory: &[LayerMemory],
    device: &Device,
    all_rows: &[usize],
) -> Vec<Kernel> {
    let mut memory = memory.to_vec();
    let mut step = Step::new(1, 1, device);
    let mut chosen = InPlace::upload(vec![0; CHOSEN_IDS], device);
    if decoder.is_whole {
        let all_rows: BTreeSet<usize> = all_rows.iter().map(|rows| encoder_rows(*rows)).collect();
        let run = dry_run(|| {
            for rows in all_rows {
                let x = decoder.forward(upload(&vec![0; rows], device), None, &mut memory, &step);
                decoder.normed(x);
            }
        });
        return run.kernels;
    }
    let run = dry_run(|| {
        for &rows in all_rows {
            let mut ids = InPlace::upload(vec![0; rows], device);
            let x = decoder.forward(upload(&vec![0; rows], device), given, &mut memory, &step);
            let logits = decoder.last_logits(x.clone(), &step);
            if BATCH_ROWS.contains(&rows) {
                decoder.all_logits(x);
            }
            argmax(logits, &mut ids, &mut step, &mut chosen, Variant::PORTABLE);
        }
        if given.is_some() {
            // Tokens that were chosen are in the table.
            decoder.forward(upload(&[0], device), None, &mut memory, &step);
        }
    });
    run.kernels
}

impl Steps {
    /// Records the graphs of a number of rows, once.
    pub(super) async fn record(&mut self, rows: usize) -> Result<()> {
        if self.graphs.contains_key(&rows) {
            return Ok(());
        }
        if self.compiles_late {
            let kernels = self.kernels(&[rows]);
            self.device.compile_ahead(kernels).await;
        }
        let Some(gpu) = self.device.recorder() else {
            return Ok(());
        };
        let device = gpu.device();
        let ids = ids_of(&mut self.ids, rows, device).get();
        let (decoder, step, variant) = (&self.decoder, &self.step, self.variant);
        let body = Graph::record(gpu, || {
            let mut memory = self.memory.clone();
            decoder.forward(ids.clone(), self.given.as_ref(), &mut memory, step)
        })
        .await?;
        let x = body.output().clone();
        let last = Graph::record(gpu, || decoder.last_logits(x.clone(), step)).await?;
        let every = match BATCH_ROWS.contains(&rows) {
            true => Some(Graph::record(gpu, || decoder.all_logits(x.clone())).await?),
            false => None,
        };
        let logits = last.output().clone();
        let next = ids_of(&mut self.ids, 1, device).clone();
        let choose = Graph::record(gpu, || {
            let (mut ids, mut step) = (next.clone(), step.clone());
            argmax(
                logits.clone(),
                &mut ids,
                &mut step,
                &mut self.chosen.clone(),
                variant,
            );
        })
        .await?;
        if rows == 1 {
            self.greedy = Some(self.record_greedy(gpu, &next).await?);
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

    /// The whole step of a greedy token, which advances `next`.
    async fn record_greedy(&self, gpu: &Gpu, next: &InPlace) -> Result<DecodeGraphs> {
        DecodeGraphs::record(gpu, || {
            let (mut memory, mut ids, mut step) =
                (self.memory.clone(), next.clone(), self.step.clone());
            let x = self.decoder.forward(ids.get(), None, &mut memory, &step);
            let logits = self.decoder.last_logits(x, &step);
            let mut chosen = self.chosen.clone();
            argmax(logits, &mut ids, &mut step, &mut chosen, self.variant);
        })
        .await
    }
}
