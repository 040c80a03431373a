//! A direct implementation of specification 5 in f64. It sorts fully and searches the whole history for
//! every token. It reports how close each decision was to its threshold, because f32 may decide close
//! ones differently.

use crate::sample::{DryParams, SamplingParams, TokenMask, philox};
use std::collections::{BTreeMap, BTreeSet};

/// Exponents below this give the weight 0 in f32 (`exp::MIN_ARGUMENT`).
const OUT_OF_REACH: f64 = -87.0;

pub struct Reference {
    pub params: SamplingParams,
    pub candidate: u32,
    pub prompt: Vec<u32>,
    pub generated: Vec<u32>,
    /// Mirostat's limit.
    pub mu: f64,
}

/// The candidates that remain of a row.
pub struct Survivors {
    /// Renormalised, in draw order.
    pub candidates: Vec<(u32, f64)>,
    /// Distance of the nearest decision from its threshold.
    pub margin: f64,
}

impl Reference {
    pub fn new(params: &SamplingParams, candidate: u32, prompt: &[u32]) -> Self {
        Self {
            mu: params
                .mirostat
                .map_or(0.0, |m| 2.0 * f64::from(m.target_bits)),
            params: params.clone(),
            candidate,
            prompt: prompt.to_vec(),
            generated: Vec::new(),
        }
    }

    fn history(&self) -> Vec<u32> {
        [&self.prompt[..], &self.generated].concat()
    }

    /// Stages 1 to 5.
    pub fn adjusted(&self, z: &[f32], mask: Option<&TokenMask>) -> Vec<f64> {
        let p = &self.params;
        let mut z: Vec<f64> = z.iter().copied().map(f64::from).collect();
        for &(id, bias) in &p.logit_bias {
            if (id as usize) < z.len() {
                z[id as usize] += f64::from(bias);
            }
        }
        let r = f64::from(p.repetition_penalty);
        for id in self.history().into_iter().collect::<BTreeSet<u32>>() {
            let z = &mut z[id as usize];
            *z = if *z > 0.0 { *z / r } else { *z * r };
        }
        for (id, z) in (0u32..).zip(&mut z) {
            let count = self.generated.iter().filter(|&&g| g == id).count();
            *z -= count as f64 * f64::from(p.frequency_penalty);
            if count > 0 {
                *z -= f64::from(p.presence_penalty);
            }
        }
        if let Some(dry) = &p.dry {
            for (id, penalty) in dry_penalties(&self.history(), dry) {
                z[id as usize] -= penalty;
            }
        }
        if let Some(mask) = mask {
            for (id, z) in (0..).zip(&mut z) {
                if !mask.allows(id) {
                    *z = f64::NEG_INFINITY;
                }
            }
        }
        z
    }

    /// Stage 7, of adjusted logits.
    pub fn probabilities(&self, z: &[f64]) -> Vec<f64> {
        let temperature = match self.params.temperature {
            t if t < 1e-5 => 1.0,
            t => f64::from(t),
        };
        softmax(z, temperature)
    }

    /// Stages 1 to 8.
    pub fn survivors(&self, z: &[f32], mask: Option<&TokenMask>) -> Survivors {
        let z = self.adjusted(z, mask);
        let z_max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut margin = f64::INFINITY;
        let mut decide =
            |value: f64, threshold: f64| margin = margin.min((value - threshold).abs());
        if self.params.temperature < 1e-5 {
            let best = (0..).zip(&z).find(|&(_, &z)| z == z_max);
            let candidates = vec![(best.unwrap().0, 1.0)];
            return Survivors { candidates, margin };
        }
        let p = self.probabilities(&z);
        let mut left: Vec<(u32, f64)> = (0u32..).zip(p).collect();
        left.retain(|&(id, _)| {
            let argument = (z[id as usize] - z_max) / f64::from(self.params.temperature);
            if z[id as usize].is_finite() {
                decide(argument / OUT_OF_REACH, 1.0);
            }
            argument >= OUT_OF_REACH
        });
        left.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let best = left[0];
        if self.params.mirostat.is_some() {
            left.retain(|c| {
                decide(-c.1.log2(), self.mu);
                -c.1.log2() <= self.mu
            });
        } else {
            left.truncate(self.params.top_k.unwrap_or(usize::MAX));
            renormalise(&mut left);
            let top_p = f64::from(self.params.top_p);
            if top_p < 1.0 {
                let mut before = 0.0;
                left.retain(|c| {
                    let keep = before < top_p;
                    if before > 0.0 {
                        decide(before, top_p);
                    }
                    before += c.1;
                    keep
                });
            }
            let min_p = f64::from(self.params.min_p);
            let p_max = left.first().map_or(0.0, |c| c.1);
            left.retain(|c| {
                // A candidate exactly as likely as the best is kept in any arithmetic.
                if c.1 < p_max {
                    decide(c.1 / p_max, min_p);
                }
                c.1 >= min_p * p_max
            });
        }
        if left.is_empty() {
            left.push(best);
        }
        renormalise(&mut left);
        Survivors {
            candidates: left,
            margin,
        }
    }

    /// Chooses a token and counts it, unless a decision was closer to its threshold than `margin`.
    pub fn sample(&mut self, z: &[f32], mask: Option<&TokenMask>, margin: f64) -> Option<u32> {
        let mut survivors = self.survivors(z, mask);
        let mut id = survivors.candidates[0].0;
        if self.params.temperature >= 1e-5 {
            let position = self.generated.len() as u64;
            let u = f64::from(philox::uniform(self.params.seed, self.candidate, position));
            let mut cumulative = 0.0;
            for &(candidate, p) in survivors.candidates.iter().rev() {
                // Summed from the last candidate up, which gives the mass before each candidate.
                cumulative += p;
                let before = 1.0 - cumulative;
                survivors.margin = survivors.margin.min((before - u).abs());
                if u >= before {
                    id = candidate;
                    break;
                }
            }
            if let Some(mirostat) = self.params.mirostat {
                let p = self.probabilities(&self.adjusted(z, mask))[id as usize];
                let (rate, target) = (mirostat.learning_rate, mirostat.target_bits);
                self.mu -= f64::from(rate) * (-p.log2() - f64::from(target));
            }
        }
        self.generated.push(id);
        (survivors.margin > margin).then_some(id)
    }
}

pub fn softmax(z: &[f64], temperature: f64) -> Vec<f64> {
    let z_max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = z.iter().map(|z| ((z - z_max) / temperature).exp());
    let total: f64 = weights.clone().sum();
    weights.map(|weight| weight / total).collect()
}

fn renormalise(candidates: &mut [(u32, f64)]) {
    let total: f64 = candidates.iter().map(|c| c.1).sum();
    candidates.iter_mut().for_each(|c| c.1 /= total);
}

/// A direct implementation of specification 5.1, in cubic time.
pub fn dry_penalties(x: &[u32], dry: &DryParams) -> BTreeMap<u32, f64> {
    let b = |id: u32| dry.breakers.contains(&id);
    let n = x.len();
    let mut longest = BTreeMap::new();
    if n < 2 || b(x[n - 1]) {
        return BTreeMap::new();
    }
    for i in (0..n - 1).filter(|&i| x[i] == x[n - 1] && !b(x[i + 1])) {
        let repeats = |m: &usize| {
            (0..*m).all(|k| k <= i && x[i - k] == x[n - 1 - k] && (k == 0 || !b(x[n - 1 - k])))
        };
        let length = (0..=50).rev().find(repeats).unwrap();
        let m = longest.entry(x[i + 1]).or_insert(length);
        *m = length.max(*m);
    }
    longest.retain(|_, m| *m >= dry.allowed_length);
    let penalty = |m: usize| {
        let excess = (m - dry.allowed_length) as i32;
        f64::from(dry.multiplier) * f64::from(dry.base).powi(excess)
    };
    longest
        .into_iter()
        .map(|(id, m)| (id, penalty(m)))
        .collect()
}
