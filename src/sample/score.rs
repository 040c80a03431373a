//! Stages 0 and 7b: log-probabilities of tokens (specification 7), as natural logarithms.

use super::candidates;
use super::check;
use super::temperature::Weigher;

/// The probability of one token at its position, and the best others.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenScore {
    /// The token.
    pub id: u32,
    /// Its log-probability in the requested distribution, at most 0; may be `-inf`.
    pub logprob: f32,
    /// Its log-probability in the raw distribution (stage 0), which `best_of` ranks by.
    pub raw_logprob: f32,
    /// The best tokens of the requested distribution, descending, lower ids first where logits are
    /// equal, as many as were requested. The token itself is listed only if it is one of them, with the
    /// same log-probability.
    pub top: Vec<(u32, f32)>,
}

/// The distribution that log-probabilities describe (specification 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogprobsMode {
    /// Stage 0: the model's own.
    #[default]
    Raw,
    /// Stage 7b: after bias, penalties, mask and temperature (greedy: a temperature of 1).
    Processed,
}

/// The scores to report for every sampled token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScoreRequest {
    /// Number of best tokens.
    pub top: usize,
    /// The distribution that log-probabilities are taken from.
    pub mode: LogprobsMode,
}

/// The raw score of `id` in a row of logits, with the `top` best tokens. The row has a finite logit, no
/// NaN and no `+inf`. An id beyond the row has the probability 0.
pub fn score(logits: &[f32], id: u32, top: usize) -> TokenScore {
    let raw = LogSoftmax::new(logits, 1.0);
    TokenScore {
        id,
        logprob: raw.of(id),
        raw_logprob: raw.of(id),
        top: raw.top(top),
    }
}

/// `log_softmax(logits / T)`, computed lazily.
pub(super) struct LogSoftmax<'a> {
    logits: &'a [f32],
    z_max: f64,
    temperature: f64,
    /// ln of the sum of `exp((z - z_max) / T)`, at least 0.
    ln_total: f64,
}

impl<'a> LogSoftmax<'a> {
    pub(super) fn new(logits: &'a [f32], temperature: f32) -> Self {
        let z_max = check::largest(logits);
        // In f64, because the logarithm is reported with more digits than an f32 sum of 150,000 weights
        // has.
        let mut total = 0.0;
        Weigher { z_max, temperature }.each_block(logits, |weights| {
            total += weights.iter().copied().map(f64::from).sum::<f64>();
        });
        Self {
            logits,
            z_max: f64::from(z_max),
            temperature: f64::from(temperature),
            ln_total: total.ln(),
        }
    }

    /// The log-probability of an id.
    pub(super) fn of(&self, id: u32) -> f32 {
        let z = self.logits.get(id as usize);
        self.of_logit(z.copied().unwrap_or(f32::NEG_INFINITY))
    }

    fn of_logit(&self, z: f32) -> f32 {
        ((f64::from(z) - self.z_max) / self.temperature - self.ln_total) as f32
    }

    /// The best `n` ids.
    pub(super) fn top(&self, n: usize) -> Vec<(u32, f32)> {
        candidates::best_tokens(self.logits, n)
            .map(|(id, z)| (id, self.of_logit(z)))
            .collect()
    }
}
