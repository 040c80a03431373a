//! The stages of the chain that are switched on by parameters. Each file is one stage: its rule, its
//! parameters if they are more than a number, its state, and its tests. This file lists the parameters
//! and runs the stages in order. The endpoint validates the parameters.

mod dry;
mod frequency_presence;
mod logit_bias;
mod min_p;
mod mirostat;
mod repetition;
mod top_k;
mod top_p;
mod typical_p;

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::Candidates;
use dry::Dry;
use frequency_presence::FrequencyPresence;
use mirostat::Mirostat;
use repetition::Repetition;

pub use dry::{DryParams, MAX_LENGTH as DRY_MAX_LENGTH};
pub use mirostat::MirostatParams;

/// Parameters of the sampler chain, already validated (ranges: specification 4.5). [`Default`] has
/// every stage off and samples at temperature 1.
///
/// A stage that the GPU kernels do not implement needs no change there: the host samples if it is on.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "test-hooks",
    derive(serde::Deserialize),
    serde(rename_all = "camelCase", default, deny_unknown_fields)
)]
pub struct SamplingParams {
    /// The numbers that are added to the logits of these ids (stage 1).
    pub logit_bias: Vec<(u32, f32)>,
    /// Divides positive and multiplies negative logits of ids in the prompt or completion (stage 2);
    /// 1 is off.
    pub repetition_penalty: f32,
    /// The number that is subtracted per occurrence in the completion (stage 3); 0 is off.
    pub frequency_penalty: f32,
    /// The number that is subtracted once from every id of the completion (stage 3); 0 is off.
    pub presence_penalty: f32,
    /// Stage 4; `None` is off.
    pub dry: Option<DryParams>,
    /// Below [`Self::GREEDY_BELOW`] sampling is greedy (stage 6), otherwise stage 7.
    pub temperature: f32,
    /// Replaces top_k, typical_p, top_p and min_p (stage 8a); `None` is off.
    pub mirostat: Option<MirostatParams>,
    /// Number of tokens that are kept; `None` keeps all.
    pub top_k: Option<usize>,
    /// The share of the probability that typical tokens keep; 1 keeps all.
    pub typical_p: f32,
    /// The share of the probability that is kept; 1 keeps all.
    pub top_p: f32,
    /// The share of the largest probability that a token needs; 0 keeps all.
    pub min_p: f32,
    /// Key of the counter-based generator.
    pub seed: i64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            logit_bias: Vec::new(),
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            dry: None,
            temperature: 1.0,
            mirostat: None,
            top_k: None,
            typical_p: 1.0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

impl SamplingParams {
    /// Temperatures below this one mean greedy (specification 4.5).
    pub const GREEDY_BELOW: f32 = 1e-5;

    /// Whether the token is the argmax, with no randomness.
    pub fn is_greedy(&self) -> bool {
        // Validation rejects NaN; it would be greedy too.
        self.temperature < Self::GREEDY_BELOW || self.temperature.is_nan()
    }

    /// Whether the token is the argmax of the model's own logits: no stage changes them first.
    pub fn is_plain_greedy(&self) -> bool {
        self.is_greedy() && !self.adjusts()
    }

    /// Whether a stage changes logits.
    pub(super) fn adjusts(&self) -> bool {
        !self.logit_bias.is_empty()
            || self.repetition_penalty != 1.0
            || self.counts()
            || self.dry.is_some()
    }

    /// Whether a penalty depends on how often an id was generated.
    pub fn counts(&self) -> bool {
        self.frequency_penalty != 0.0 || self.presence_penalty != 0.0
    }
}

/// The state that the stages keep of the tokens so far. It is empty for a stage that is off.
///
/// It moves a sampler to the device and back, so it covers the stages that run there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StageMemory {
    /// Ids that the repetition penalty applies to.
    pub seen: BTreeSet<u32>,
    /// The number of times that each id was generated, for the frequency and presence penalties.
    pub counts: BTreeMap<u32, u32>,
    /// Prompt and completion, for DRY.
    pub history: Vec<u32>,
    /// Mirostat's limit on the surprise of the next token, in bits.
    pub mu: Option<f32>,
}

/// The stages that are on and keep state.
#[derive(Debug)]
pub(super) struct Stages {
    repetition: Option<Repetition>,
    frequency_presence: Option<FrequencyPresence>,
    dry: Option<Dry>,
    mirostat: Option<Mirostat>,
}

impl Stages {
    /// The stages after `prompt`.
    pub(super) fn new(params: &SamplingParams, prompt: &[u32]) -> Self {
        Self {
            repetition: Repetition::new(params.repetition_penalty, prompt),
            frequency_presence: FrequencyPresence::new(
                params.frequency_penalty,
                params.presence_penalty,
            ),
            dry: Dry::new(params.dry.as_ref(), prompt),
            mirostat: Mirostat::new(params.mirostat),
        }
    }

    /// The stages with the state `memory`.
    pub(super) fn resume(params: &SamplingParams, memory: StageMemory) -> Self {
        let mut stages = Self::new(params, &[]);
        if let Some(stage) = &mut stages.repetition {
            stage.seen = memory.seen;
        }
        if let Some(stage) = &mut stages.frequency_presence {
            stage.counts = memory.counts;
        }
        if let Some(stage) = &mut stages.dry {
            stage.history = memory.history;
        }
        if let (Some(stage), Some(mu)) = (&mut stages.mirostat, memory.mu) {
            stage.mu = mu;
        }
        stages
    }

    /// The state of the stages.
    pub(super) fn memory(&self) -> StageMemory {
        let counted = self.frequency_presence.as_ref();
        StageMemory {
            seen: (self.repetition.as_ref()).map_or_else(BTreeSet::new, |stage| stage.seen.clone()),
            counts: counted.map_or_else(BTreeMap::new, |stage| stage.counts.clone()),
            history: (self.dry.as_ref()).map_or_else(Vec::new, |stage| stage.history.clone()),
            mu: self.mirostat_mu(),
        }
    }

    /// Records a generated token.
    pub(super) fn push(&mut self, id: u32) {
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

    /// Stages 1 to 4: change the logits in place. Finite logits stay finite: none of them forbids a
    /// token.
    pub(super) fn adjust(&mut self, params: &SamplingParams, logits: &mut [f32]) {
        logit_bias::apply(logits, &params.logit_bias);
        if let Some(stage) = &self.repetition {
            stage.apply(logits);
        }
        if let Some(stage) = &self.frequency_presence {
            stage.apply(logits);
        }
        if let Some(stage) = &mut self.dry {
            stage.apply(logits);
        }
    }

    /// Stage 8: removes the least likely candidates. At least one remains.
    pub(super) fn truncate(&self, params: &SamplingParams, candidates: &mut Candidates) {
        if let Some(mirostat) = &self.mirostat {
            mirostat.truncate(candidates);
        } else {
            top_k::apply(candidates, params.top_k);
            typical_p::apply(candidates, params.typical_p);
            top_p::apply(candidates, params.top_p);
            min_p::apply(candidates, params.min_p);
        }
    }

    /// Records that the drawn token had the probability `p` before the truncation.
    pub(super) fn drawn(&mut self, p: f32) {
        if let Some(mirostat) = &mut self.mirostat {
            mirostat.update(p);
        }
    }

    /// Mirostat's limit, in bits; `None` if mirostat is off.
    pub(super) fn mirostat_mu(&self) -> Option<f32> {
        self.mirostat.as_ref().map(|stage| stage.mu)
    }

    /// Replaces mirostat's limit, if mirostat is on.
    pub(super) fn set_mirostat_mu(&mut self, mu: f32) {
        if let Some(stage) = &mut self.mirostat {
            stage.mu = mu;
        }
    }
}
