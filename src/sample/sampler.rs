//! The chain itself: runs the stages in their order. Each stage's rule is in its own file.

use super::candidates::Candidates;
use super::temperature::Weigher;
use super::{
    SamplingParams, ScoreRequest, TokenMask, TokenScore, check, draw, greedy, min_p, philox, top_k,
    top_p,
};
use crate::Result;

/// A chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Its id.
    pub id: u32,
    /// What was asked about it.
    pub score: Option<TokenScore>,
}

/// Chooses the tokens of one choice; keeps scratch memory from token to token.
#[derive(Debug)]
pub struct Sampler {
    pub(super) params: SamplingParams,
    candidate: u32,
    /// Tokens generated so far.
    position: usize,
    pub(super) candidates: Candidates,
}

impl Sampler {
    /// A sampler for candidate `candidate` of `prompt`.
    pub fn new(params: &SamplingParams, candidate: u32, _prompt: &[u32]) -> Self {
        Self {
            params: params.clone(),
            candidate,
            position: 0,
            candidates: Candidates::default(),
        }
    }

    /// Chooses the next token from the logits, which the stages may change in place, and takes it
    /// into its own account of what was generated. With `mask` only allowed tokens are chosen.
    ///
    /// # Errors
    /// [`crate::Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite;
    /// [`crate::Error::GrammarDeadEnd`] if the mask leaves nothing.
    pub fn sample(
        &mut self,
        logits: &mut [f32],
        _mask: Option<&TokenMask>,
        _score: Option<ScoreRequest>,
    ) -> Result<Sampled> {
        let position = self.position;
        let z_max = check::finite_max(logits, position)?;
        let id = if self.params.is_greedy() {
            greedy::argmax(logits, z_max)
        } else {
            self.truncate(logits, z_max);
            let u = philox::uniform(self.params.seed, self.candidate, position as u64);
            draw::draw(&mut self.candidates, u)
        };
        self.position += 1;
        Ok(Sampled { id, score: None })
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
