//! The sampler chain: runs all stages on each row of logits and draws a token. Stages that are switched
//! on by parameters are in `stages`.

use std::cell::Cell;

use super::candidates::Candidates;
use super::mask::TokenMask;
use super::score::{LogSoftmax, LogprobsMode, ScoreRequest, TokenScore};
use super::stages::{SamplingParams, StageMemory, Stages};
use super::temperature::Weigher;
use super::{check, draw, greedy, philox};
use crate::{Error, Result};

thread_local! {
    static SAMPLERS: Cell<u64> = const { Cell::new(0) };
}

fn next_identity() -> u64 {
    SAMPLERS.replace(SAMPLERS.get() + 1)
}

/// A sampled token.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Its id.
    pub id: u32,
    /// Its score, if one was requested.
    pub score: Option<TokenScore>,
}

/// Samples the tokens of one candidate of a prompt. Between tokens it keeps the state of the active
/// stages, and scratch memory.
#[derive(Debug)]
pub struct Sampler {
    identity: u64,
    params: SamplingParams,
    candidate: u32,
    /// Tokens generated so far.
    position: usize,
    stages: Stages,
    pub(super) candidates: Candidates,
    /// The unmodified row of the model, if a score is requested.
    raw: Vec<f32>,
}

impl Sampler {
    /// A sampler for candidate `candidate` of `prompt`.
    pub fn new(params: &SamplingParams, candidate: u32, prompt: &[u32]) -> Self {
        Self::with_stages(params, candidate, 0, Stages::new(params, prompt))
    }

    /// A sampler that continues after `position` generated tokens, with the state `memory` of its
    /// stages.
    pub fn resume(
        params: &SamplingParams,
        candidate: u32,
        position: usize,
        memory: StageMemory,
    ) -> Self {
        Self::with_stages(params, candidate, position, Stages::resume(params, memory))
    }

    fn with_stages(
        params: &SamplingParams,
        candidate: u32,
        position: usize,
        stages: Stages,
    ) -> Self {
        Self {
            identity: next_identity(),
            params: params.clone(),
            candidate,
            position,
            stages,
            candidates: Candidates::default(),
            raw: Vec::new(),
        }
    }

    /// Another sampler in the same state.
    pub fn fork(&self) -> Self {
        Self::resume(&self.params, self.candidate, self.position, self.memory())
    }

    /// The state of its stages.
    pub fn memory(&self) -> StageMemory {
        self.stages.memory()
    }

    /// A number that no other sampler of this thread has, nor this one with another temperature.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Its parameters.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// Changes the temperature of the tokens from here on.
    pub fn set_temperature(&mut self, temperature: f32) {
        if self.params.temperature != temperature {
            self.params.temperature = temperature;
            // A copy on the device has the old one.
            self.identity = next_identity();
        }
    }

    /// The index of its candidate, which is part of the random generator's counter.
    pub fn candidate(&self) -> u32 {
        self.candidate
    }

    /// Tokens generated so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Records a token that the device sampled as [`Self::sample`] would, and mirostat's limit after
    /// it.
    pub fn follow(&mut self, id: u32, mu: f32) {
        self.push(id);
        self.stages.set_mirostat_mu(mu);
    }

    /// Samples the next token from the logits, which the stages may change in place, and records it.
    /// With `mask` only allowed tokens are sampled.
    ///
    /// # Errors
    /// [`crate::Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite;
    /// [`crate::Error::GrammarDeadEnd`] if the mask leaves nothing finite. Nothing is recorded then.
    pub fn sample(
        &mut self,
        logits: &mut [f32],
        mask: Option<&TokenMask>,
        score: Option<ScoreRequest>,
    ) -> Result<Sampled> {
        self.raw.clear();
        if score.is_some() {
            self.raw.extend_from_slice(logits);
        }
        let z_max = self.adjusted(logits, mask)?;
        let id = if self.params.is_greedy() {
            greedy::argmax(logits, z_max)
        } else {
            self.draw(logits, z_max)
        };
        let score = score.map(|request| self.score(id, logits, request));
        self.push(id);
        Ok(Sampled { id, score })
    }

    /// Records a token that was not sampled because the constraint allowed no other. Mirostat's limit
    /// stays.
    pub fn push(&mut self, id: u32) {
        self.position += 1;
        self.stages.push(id);
    }

    /// Stages 1 to 5: changes the logits in place and returns the largest of them. Samples nothing.
    ///
    /// # Errors
    /// Same as [`Self::sample`].
    pub fn adjusted(&mut self, logits: &mut [f32], mask: Option<&TokenMask>) -> Result<f32> {
        let z_max = check::finite_max(logits, self.position)?;
        if !self.params.adjusts() && mask.is_none() {
            return Ok(z_max);
        }
        self.stages.adjust(&self.params, logits);
        if let Some(mask) = mask {
            mask.apply(logits);
        }
        // Only the mask forbids tokens: biases and penalties keep finite logits finite.
        let position = self.position;
        check::finite_max(logits, position).map_err(|_| Error::GrammarDeadEnd { position })
    }

    /// The candidates that [`Self::sample`] draws from: ids and their renormalized probabilities in draw order.
    /// Greedy sampling has one survivor. Changes the logits as [`Self::adjusted`] does; samples
    /// nothing.
    ///
    /// # Errors
    /// Same as [`Self::sample`].
    pub fn survivors(
        &mut self,
        logits: &mut [f32],
        mask: Option<&TokenMask>,
    ) -> Result<Vec<(u32, f32)>> {
        let z_max = self.adjusted(logits, mask)?;
        if self.params.is_greedy() {
            return Ok(vec![(greedy::argmax(logits, z_max), 1.0)]);
        }
        self.weigh(logits, z_max);
        self.stages.truncate(&self.params, &mut self.candidates);
        let candidates = &mut self.candidates;
        let total = candidates.total();
        let ranks = 0..candidates.len();
        Ok(ranks
            .map(|rank| (candidates.id(rank), candidates.weight(rank) / total))
            .collect())
    }

    /// Mirostat's limit μ on the surprise of the next token, in bits; `None` if mirostat is off.
    pub fn mirostat_mu(&self) -> Option<f32> {
        self.stages.mirostat_mu()
    }

    fn draw(&mut self, logits: &[f32], z_max: f32) -> u32 {
        self.weigh(logits, z_max);
        let total = self.candidates.total();
        self.stages.truncate(&self.params, &mut self.candidates);
        let u = philox::uniform(self.params.seed, self.candidate, self.position as u64);
        let rank = draw::draw(&mut self.candidates, u);
        self.stages.drawn(self.candidates.weight(rank) / total);
        self.candidates.id(rank)
    }

    fn weigh(&mut self, logits: &[f32], z_max: f32) {
        let temperature = self.params.temperature;
        self.candidates
            .reset(logits, Weigher { z_max, temperature });
    }

    /// The score of `id`, sampled from the adjusted `logits`.
    fn score(&self, id: u32, logits: &[f32], request: ScoreRequest) -> TokenScore {
        let raw = LogSoftmax::new(&self.raw, 1.0);
        let processed = match request.mode {
            LogprobsMode::Raw => None,
            LogprobsMode::Processed if self.params.is_greedy() => {
                Some(LogSoftmax::new(logits, 1.0))
            }
            LogprobsMode::Processed => Some(LogSoftmax::new(logits, self.params.temperature)),
        };
        let wanted = processed.as_ref().unwrap_or(&raw);
        TokenScore {
            id,
            logprob: wanted.of(id),
            raw_logprob: raw.of(id),
            top: wanted.top(request.top),
        }
    }
}
