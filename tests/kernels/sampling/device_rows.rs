//! Rows that are sampled at once, each with its own sampler.

use burn::tensor::Device;
use inpage::{
    Result,
    ops::{
        InPlace,
        sample::{RowChoice, SamplerMemory, SamplerShape, parse, sample},
        step::Step,
    },
    sample::{Sampled, Sampler, ScoreRequest, TokenMask},
};

use crate::fixture::{ids, segment, tensor, words};

/// Samplers on a device, slot `i` for row `i`, and the inputs of their steps.
pub struct DeviceRows {
    memory: SamplerMemory,
    step: Step,
    ids: InPlace,
    shape: SamplerShape,
    device: Device,
}

impl DeviceRows {
    pub fn new(rows: usize, vocab: usize, device: &Device) -> DeviceRows {
        let shape = SamplerShape {
            slots: rows,
            vocab,
            history_tokens: 512,
        };
        let mut step = Step::new(rows, rows, device);
        step.set(&vec![segment(40, 1, &[3]); rows]);
        DeviceRows {
            memory: SamplerMemory::new(shape, device),
            step,
            ids: InPlace::new(ids(&vec![7; rows], device)),
            shape,
            device: device.clone(),
        }
    }

    pub fn load(&mut self, slot: usize, sampler: &Sampler) {
        self.memory.load(slot, sampler);
    }

    /// Samples a token from each row of logits.
    pub fn sample(
        &mut self,
        logits: &[f32],
        masks: &[Option<TokenMask>],
        scores: &[Option<ScoreRequest>],
    ) {
        let rows = logits.len() / self.shape.vocab;
        let choices: Vec<RowChoice> = (0..rows)
            .map(|slot| RowChoice {
                slot,
                is_masked: masks[slot].is_some(),
                score: scores[slot],
            })
            .collect();
        for (slot, mask) in masks.iter().enumerate() {
            if let Some(mask) = mask {
                self.memory.set_mask(slot, mask);
            }
        }
        self.memory.set_rows(&choices);
        let logits = tensor(logits, [rows, self.shape.vocab], &self.device);
        sample(logits, &mut self.memory, &mut self.ids, &mut self.step);
    }

    /// The token that a slot sampled at a position, and mirostat's limit after it.
    pub fn results(
        &self,
        wanted: impl IntoIterator<Item = (usize, usize, Option<ScoreRequest>)>,
    ) -> Vec<Result<(Sampled, f32)>> {
        let words = words(self.memory.results());
        let wanted = wanted.into_iter();
        wanted
            .map(|(slot, position, score)| parse(&words, slot, position, score))
            .collect()
    }

    /// The next ids, and the step's words.
    pub fn next(&self) -> (Vec<u32>, Vec<u32>) {
        (words(self.ids.get()), words(self.step.words()))
    }
}
