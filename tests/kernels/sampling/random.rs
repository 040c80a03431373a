//! Random parameters, histories and rows: the device samples the same tokens as the CPU, unless a decision
//! is closer to its threshold than rounding errors.

use burn::tensor::Device;
use inpage::sample::{
    DryParams, LogprobsMode, MirostatParams, Sampler, SamplingParams, ScoreRequest, TokenMask,
    philox,
};

use super::device_rows::DeviceRows;
use crate::fixture::{Noise, gpu};
use crate::reference::Reference;

/// Decisions closer to their threshold than this (in probability, for mirostat in bits) may go either way,
/// because sums of f32 are computed in another order.
pub const MARGIN: f64 = 5e-6;

/// Random choices.
pub struct Dice(pub Noise);

impl Dice {
    pub fn unit(&mut self) -> f32 {
        (self.0.next() + 1.0) / 2.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f32) as usize).min(n - 1)
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + self.unit() * (high - low)
    }

    pub fn params(&mut self, vocab: usize) -> SamplingParams {
        let mut params = SamplingParams {
            seed: (self.unit() * 1e7) as i64 * 0x1_0000_0001 - 4,
            temperature: match self.below(8) {
                0 => 0.0,
                1 | 2 => 1.0,
                _ => self.between(0.05, 2.0),
            },
            ..SamplingParams::default()
        };
        if self.one_in(3) {
            let mut ids: Vec<u32> = (0..5).map(|_| self.below(vocab) as u32).collect();
            ids.dedup();
            ids.sort_unstable();
            ids.dedup();
            let biases = ids.into_iter().map(|id| (id, self.between(-8.0, 8.0)));
            params.logit_bias = biases.collect();
            // The table does not have to be sorted.
            params.logit_bias.reverse();
        }
        if self.one_in(3) {
            params.repetition_penalty = self.between(0.5, 2.0);
        }
        if self.one_in(3) {
            params.frequency_penalty = self.between(-2.0, 2.0);
        }
        if self.one_in(3) {
            params.presence_penalty = self.between(-2.0, 2.0);
        }
        if self.one_in(3) {
            params.dry = Some(DryParams {
                multiplier: self.between(0.1, 2.0),
                base: self.between(1.0, 1.75),
                allowed_length: self.below(4),
                breakers: (0..vocab as u32).filter(|_| self.one_in(6)).collect(),
            });
        }
        if self.one_in(4) {
            params.mirostat = Some(MirostatParams {
                target_bits: self.between(0.1, 6.0),
                learning_rate: self.between(0.01, 1.0),
            });
        }
        if self.one_in(3) {
            params.top_k = Some(1 + self.below(vocab.min(60) + 2));
        }
        params.top_p = match self.below(8) {
            0 => 0.0,
            1 | 2 => 1.0,
            _ => self.unit(),
        };
        params.min_p = match self.below(8) {
            0 => 1.0,
            1 => self.unit(),
            2 | 3 => self.unit() * 0.1,
            _ => 0.0,
        };
        params
    }

    /// A row with a finite logit at id 0.
    pub fn row(&mut self, vocab: usize) -> Vec<f32> {
        let scale = [0.0, 0.05, 1.0, 4.0, 20.0, 60.0][self.below(6)];
        let is_tied = self.one_in(3);
        let has_gaps = self.one_in(3);
        let mut row: Vec<f32> = (0..vocab)
            .map(|_| {
                let z = self.0.next() * scale;
                match (has_gaps && self.one_in(4), is_tied) {
                    (true, _) => f32::NEG_INFINITY,
                    // Includes zeros of both signs.
                    (_, true) => (z * 2.0).round() / 2.0,
                    _ => z,
                }
            })
            .collect();
        row[0] = row[0].max(-scale);
        if self.one_in(4) {
            // The other tokens are far below, but there may be many.
            row[vocab / 2] = scale + 12.1;
        }
        row
    }

    /// Random ids, some of which repeat.
    pub fn history(&mut self, vocab: usize) -> Vec<u32> {
        let len = [0, 1, 3, 30, 200][self.below(5)];
        let ids = vocab.min([2, 5, vocab][self.below(3)]);
        (0..len).map(|_| self.below(ids) as u32).collect()
    }

    /// A mask that allows at least one finite logit.
    pub fn mask(&mut self, row: &[f32]) -> Option<TokenMask> {
        self.one_in(5).then(|| {
            let density = 1 + self.below(6);
            let mut words = vec![0; row.len().div_ceil(32)];
            for id in 0..row.len() {
                if id == 0 || self.one_in(density) {
                    words[id / 32] |= 1 << (id % 32);
                }
            }
            TokenMask::from_words(words)
        })
    }

    pub fn score(&mut self) -> Option<ScoreRequest> {
        self.one_in(4).then(|| ScoreRequest {
            top: self.below(6),
            mode: match self.one_in(2) {
                true => LogprobsMode::Raw,
                false => LogprobsMode::Processed,
            },
        })
    }
}

struct Case {
    sampler: Sampler,
    reference: Reference,
    row: Vec<f32>,
    mask: Option<TokenMask>,
    score: Option<ScoreRequest>,
}

fn case(dice: &mut Dice, vocab: usize) -> Case {
    let params = dice.params(vocab);
    let history = dice.history(vocab);
    let (prompt, generated) = history.split_at(dice.below(history.len() + 1));
    let candidate = dice.below(4) as u32;
    let mut sampler = Sampler::new(&params, candidate, prompt);
    generated.iter().for_each(|&id| sampler.push(id));
    let mut reference = Reference::new(&params, candidate, prompt);
    reference.generated = generated.to_vec();
    let row = dice.row(vocab);
    Case {
        mask: dice.mask(&row),
        score: dice.score(),
        sampler,
        reference,
        row,
    }
}

pub fn close(a: f32, b: f32) -> bool {
    a == b || (a - b).abs() <= 1e-4 * (1.0 + b.abs())
}

/// Samples `batches` batches of `count` random cases. Returns the number of tokens that differ. Each of them must be
/// a close decision.
fn compare(device: &Device, vocab: usize, count: usize, batches: usize, dice: &mut Dice) -> usize {
    let mut rows = DeviceRows::new(count, vocab, device);
    let mut differing = 0;
    for _ in 0..batches {
        let mut cases: Vec<Case> = (0..count).map(|_| case(dice, vocab)).collect();
        let positions: Vec<usize> = cases.iter().map(|case| case.sampler.position()).collect();
        for (slot, case) in cases.iter().enumerate() {
            rows.load(slot, &case.sampler);
        }
        let logits: Vec<f32> = cases.iter().flat_map(|case| case.row.clone()).collect();
        let masks: Vec<_> = cases.iter().map(|case| case.mask.clone()).collect();
        let scores: Vec<_> = cases.iter().map(|case| case.score).collect();
        rows.sample(&logits, &masks, &scores);
        let wanted = (0..count).map(|slot| (slot, positions[slot], scores[slot]));
        let found = rows.results(wanted);
        for (found, case) in found.into_iter().zip(&mut cases) {
            let mask = case.mask.as_ref();
            let expected = case.sampler.sample(&mut case.row.clone(), mask, case.score);
            let (expected, what) = (expected.unwrap(), format!("{:?}", case.sampler.params()));
            let (found, mu) = found.unwrap();
            if found.id != expected.id {
                let is_clear = case.reference.sample(&case.row, mask, MARGIN);
                assert_eq!(is_clear, None, "{found:?}, not {expected:?}: {what}");
                differing += 1;
                continue;
            }
            if let Some(limit) = case.sampler.mirostat_mu() {
                assert!(close(mu, limit), "a limit of {mu}, not {limit}: {what}");
            }
            let (Some(found), Some(expected)) = (found.score, expected.score) else {
                continue;
            };
            let context = format!("{found:?}, not {expected:?}: {what}");
            assert!(close(found.logprob, expected.logprob), "{context}");
            assert!(close(found.raw_logprob, expected.raw_logprob), "{context}");
            assert_eq!(found.top.len(), expected.top.len(), "{context}");
            for (a, b) in found.top.iter().zip(&expected.top) {
                assert!(a.0 == b.0 && close(a.1, b.1), "{context}");
                if a.0 == found.id {
                    assert_eq!(a.1.to_bits(), found.logprob.to_bits(), "{context}");
                }
            }
        }
    }
    differing
}

#[test]
fn ten_thousand_random_rows_are_sampled_like_on_the_cpu() {
    let (gpu, mut dice) = (gpu(), Dice(Noise(41)));
    let mut differing = 0;
    for (vocab, batches) in [(1, 1), (33, 8), (512, 7), (1000, 4)] {
        differing += compare(gpu.device(), vocab, 500, batches, &mut dice);
    }
    assert!(differing <= 10, "{differing} of 10,000");
    println!("{differing} of 10,000 within the margin");
}

#[test]
fn the_twin_equals_the_chain() {
    let differing = compare(&Device::flex(), 70, 40, 10, &mut Dice(Noise(2)));
    assert_eq!(differing, 0);
}

#[test]
fn a_large_vocabulary_is_sampled_like_on_the_cpu() {
    let gpu = gpu();
    let differing = compare(gpu.device(), 152_064, 4, 6, &mut Dice(Noise(5)));
    assert!(differing <= 1, "{differing} of 24");
    draws_from_a_heavy_tail(gpu.device(), 152_064, 4);
}

/// Samples from many tokens with tiny weights that add up to a quarter of the total. Each weight is too small
/// for the CPU's sums of f32, so results are compared with the naive sampler.
fn draws_from_a_heavy_tail(device: &Device, vocab: usize, count: usize) {
    let mut row: Vec<f32> = Noise(8).floats(vocab);
    row[vocab / 3] = 13.1;
    let mut rows = DeviceRows::new(count, vocab, device);
    let seeds = (0i64..).filter(|seed| philox::uniform(*seed, 0, 0) > 0.75);
    let seeds: Vec<i64> = seeds.take(4 * count).collect();
    let mut clear = 0;
    for seeds in seeds.chunks(count) {
        let of = |seed: &i64| SamplingParams {
            seed: *seed,
            ..SamplingParams::default()
        };
        for (slot, params) in seeds.iter().map(of).enumerate() {
            rows.load(slot, &Sampler::new(&params, 0, &[]));
        }
        rows.sample(&row.repeat(count), &vec![None; count], &vec![None; count]);
        let found = rows.results((0..count).map(|slot| (slot, 0, None)));
        for (found, params) in found.into_iter().zip(seeds.iter().map(of)) {
            let expected = Reference::new(&params, 0, &[]).sample(&row, None, 3e-7);
            let id = found.unwrap().0.id;
            assert_ne!(id as usize, vocab / 3);
            if let Some(expected) = expected {
                assert_eq!(id, expected);
                clear += 1;
            }
        }
    }
    assert!(clear >= count, "{clear} clear draws");
}
