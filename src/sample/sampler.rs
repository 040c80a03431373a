//! The chain itself: runs the stages in their order. Each stage's rule is in its own file.

use super::candidates::Candidates;
use super::dry::Dry;
use super::frequency_presence::FrequencyPresence;
use super::mirostat::Mirostat;
use super::repetition::Repetition;
use super::score::LogSoftmax;
use super::temperature::Weigher;
use super::{LogprobsMode, SamplingParams, ScoreRequest, TokenMask, TokenScore};
use super::{check, draw, greedy, logit_bias, min_p, philox, top_k, top_p};
use crate::{Error, Result};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

thread_local! {
    static SAMPLERS: Cell<u64> = const { Cell::new(0) };
}

/// A chosen token.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// Its id.
    pub id: u32,
    /// What was asked about it.
    pub score: Option<TokenScore>,
}

/// All that a sampler remembers of the tokens so far. What belongs to a stage that is off is empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplerState {
    /// Tokens generated so far.
    pub position: usize,
    /// Ids that the repetition penalty touches.
    pub seen: BTreeSet<u32>,
    /// How often each id was generated, for the frequency and presence penalties.
    pub counts: BTreeMap<u32, u32>,
    /// Prompt and completion, for DRY.
    pub history: Vec<u32>,
    /// Mirostat's limit on the surprise of the next token, in bits.
    pub mu: Option<f32>,
}

/// Chooses the tokens of one choice. Keeps the account of what was generated, as far as a stage
/// that is on needs it, and scratch memory from token to token.
#[derive(Debug)]
pub struct Sampler {
    identity: u64,
    params: SamplingParams,
    candidate: u32,
    /// Tokens generated so far.
    position: usize,
    repetition: Option<Repetition>,
    frequency_presence: Option<FrequencyPresence>,
    dry: Option<Dry>,
    mirostat: Option<Mirostat>,
    pub(super) candidates: Candidates,
    /// The row as the model gave it, while a score is wanted.
    raw: Vec<f32>,
}

impl Sampler {
    /// A sampler for candidate `candidate` of `prompt`.
    pub fn new(params: &SamplingParams, candidate: u32, prompt: &[u32]) -> Self {
        Self {
            identity: SAMPLERS.replace(SAMPLERS.get() + 1),
            params: params.clone(),
            candidate,
            position: 0,
            repetition: Repetition::new(params.repetition_penalty, prompt),
            frequency_presence: FrequencyPresence::new(
                params.frequency_penalty,
                params.presence_penalty,
            ),
            dry: Dry::new(params.dry.as_ref(), prompt),
            mirostat: Mirostat::new(params.mirostat),
            candidates: Candidates::default(),
            raw: Vec::new(),
        }
    }

    /// A sampler that goes on where another was.
    pub fn resume(params: &SamplingParams, candidate: u32, state: SamplerState) -> Self {
        let mut sampler = Self::new(params, candidate, &[]);
        sampler.position = state.position;
        if let Some(stage) = &mut sampler.repetition {
            stage.seen = state.seen;
        }
        if let Some(stage) = &mut sampler.frequency_presence {
            stage.counts = state.counts;
        }
        if let Some(stage) = &mut sampler.dry {
            stage.history = state.history;
        }
        if let (Some(stage), Some(mu)) = (&mut sampler.mirostat, state.mu) {
            stage.mu = mu;
        }
        sampler
    }

    /// What it remembers.
    pub fn state(&self) -> SamplerState {
        let (repetition, counted) = (&self.repetition, &self.frequency_presence);
        SamplerState {
            position: self.position,
            seen: repetition
                .as_ref()
                .map_or_else(BTreeSet::new, |stage| stage.seen.clone()),
            counts: counted
                .as_ref()
                .map_or_else(BTreeMap::new, |stage| stage.counts.clone()),
            history: self
                .dry
                .as_ref()
                .map_or_else(Vec::new, |stage| stage.history.clone()),
            mu: self.mirostat_mu(),
        }
    }

    /// A number that no other sampler of this thread has.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// How it chooses.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// Which candidate of its prompt it serves.
    pub fn candidate(&self) -> u32 {
        self.candidate
    }

    /// Tokens taken in so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Takes in a token that was chosen elsewhere as [`Self::sample`] would, and mirostat's limit
    /// after it.
    pub fn follow(&mut self, id: u32, mu: f32) {
        self.push(id);
        if let Some(stage) = &mut self.mirostat {
            stage.mu = mu;
        }
    }

    /// Chooses the next token from the logits, which the stages may change in place, and takes it
    /// into its own account of what was generated. With `mask` only allowed tokens are chosen.
    ///
    /// # Errors
    /// [`crate::Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite;
    /// [`crate::Error::GrammarDeadEnd`] if the mask leaves nothing finite. The account is then as
    /// it was.
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

    /// Takes a token into the account of what was generated, as [`Self::sample`] does with what it
    /// chose: one that needed no choice. Mirostat's limit stays.
    pub fn push(&mut self, id: u32) {
        self.position += 1;
        if let Some(stage) = &mut self.repetition {
            stage.push(id);
        }
        if let Some(stage) = &mut self.frequency_presence {
            stage.push(id);
        }
        if let Some(stage) = &mut self.dry {
            stage.push(id);
        }
    }

    /// Stages 1 to 5: changes the logits in place and returns the largest of them. Chooses nothing.
    ///
    /// # Errors
    /// As [`Self::sample`].
    pub fn adjusted(&mut self, logits: &mut [f32], mask: Option<&TokenMask>) -> Result<f32> {
        let z_max = check::finite_max(logits, self.position)?;
        if !self.adjusts() && mask.is_none() {
            return Ok(z_max);
        }
        logit_bias::apply(logits, &self.params.logit_bias);
        if let Some(stage) = &self.repetition {
            stage.apply(logits);
        }
        if let Some(stage) = &self.frequency_presence {
            stage.apply(logits);
        }
        if let Some(stage) = &mut self.dry {
            stage.apply(logits);
        }
        if let Some(mask) = mask {
            mask.apply(logits);
        }
        // Only the mask forbids: biases and penalties leave finite what was finite.
        let position = self.position;
        check::finite_max(logits, position).map_err(|_| Error::GrammarDeadEnd { position })
    }

    /// What [`Self::sample`] draws from: ids and their renormalised probabilities in draw order.
    /// Greedy has one survivor. Changes the logits as [`Self::adjusted`] does; chooses nothing.
    ///
    /// # Errors
    /// As [`Self::sample`].
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
        self.truncate();
        let candidates = &mut self.candidates;
        let total = candidates.total();
        let ranks = 0..candidates.len();
        Ok(ranks
            .map(|rank| (candidates.id(rank), candidates.weight(rank) / total))
            .collect())
    }

    /// Mirostat's limit μ on the surprise of the next token, in bits; `None` if mirostat is off.
    pub fn mirostat_mu(&self) -> Option<f32> {
        self.mirostat.as_ref().map(Mirostat::mu)
    }

    fn adjusts(&self) -> bool {
        !self.params.logit_bias.is_empty()
            || self.repetition.is_some()
            || self.frequency_presence.is_some()
            || self.dry.is_some()
    }

    fn draw(&mut self, logits: &[f32], z_max: f32) -> u32 {
        self.weigh(logits, z_max);
        let total = self.candidates.total();
        self.truncate();
        let u = philox::uniform(self.params.seed, self.candidate, self.position as u64);
        let rank = draw::draw(&mut self.candidates, u);
        if let Some(mirostat) = &mut self.mirostat {
            mirostat.update(self.candidates.weight(rank) / total);
        }
        self.candidates.id(rank)
    }

    fn weigh(&mut self, logits: &[f32], z_max: f32) {
        let temperature = self.params.temperature;
        self.candidates
            .reset(logits, Weigher { z_max, temperature });
    }

    fn truncate(&mut self) {
        if let Some(mirostat) = &self.mirostat {
            mirostat.truncate(&mut self.candidates);
        } else {
            top_k::apply(&mut self.candidates, self.params.top_k);
            top_p::apply(&mut self.candidates, self.params.top_p);
            min_p::apply(&mut self.candidates, self.params.min_p);
        }
    }

    /// The score of `id`, chosen from the adjusted `logits`.
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
