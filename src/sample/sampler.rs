//! The chain itself: runs the stages in their order. Each stage's rule is in its own file.

use super::candidates::Candidates;
use super::temperature::Weigher;
use super::{SamplingParams, check, draw, greedy, min_p, philox, top_k, top_p};
use crate::Result;

/// Chooses the tokens of one choice; keeps scratch memory from token to token.
#[derive(Debug)]
pub struct Sampler {
    pub(super) params: SamplingParams,
    pub(super) candidates: Candidates,
}

impl Sampler {
    /// A sampler for one choice.
    pub fn new(params: &SamplingParams) -> Self {
        Self {
            params: params.clone(),
            candidates: Candidates::default(),
        }
    }

    /// Chooses a token from the logits; later stages may change them in place. `position` counts
    /// the tokens generated before this one.
    ///
    /// # Errors
    /// [`crate::Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite.
    pub fn sample(&mut self, logits: &mut [f32], position: usize) -> Result<u32> {
        let z_max = check::finite_max(logits, position)?;
        if self.params.is_greedy() {
            return Ok(greedy::argmax(logits, z_max));
        }
        self.truncate(logits, z_max);
        let u = philox::uniform(self.params.seed, self.params.candidate, position as u64);
        Ok(draw::draw(&mut self.candidates, u))
    }

    /// What [`Self::sample`] draws from: ids and their renormalised probabilities in draw order.
    /// Greedy has one survivor. Meant for comparing another sampler with this one.
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub fn survivors(&mut self, logits: &mut [f32]) -> Result<Vec<(u32, f32)>> {
        let z_max = check::finite_max(logits, 0)?;
        if self.params.is_greedy() {
            return Ok(vec![(greedy::argmax(logits, z_max), 1.0)]);
        }
        self.truncate(logits, z_max);
        let total = self.candidates.total();
        let ranks = 0..self.candidates.len();
        Ok(ranks
            .map(|rank| {
                (
                    self.candidates.id(rank),
                    self.candidates.weight(rank) / total,
                )
            })
            .collect())
    }

    fn truncate(&mut self, logits: &[f32], z_max: f32) {
        let SamplingParams {
            temperature,
            top_k,
            top_p,
            min_p,
            ..
        } = self.params;
        self.candidates
            .reset(logits, Weigher { z_max, temperature });
        top_k::apply(&mut self.candidates, top_k);
        top_p::apply(&mut self.candidates, top_p);
        min_p::apply(&mut self.candidates, min_p);
    }
}
