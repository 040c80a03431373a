//! A request to the engine: one prompt and what to generate for it.

pub use super::draft::DraftRules;
pub use super::prompt::{Content, Embeddings, Prompt, Span};
pub use super::token_rules::{SpanBudget, TokenRules};
pub use crate::sample::{
    DryParams, LogprobsMode, MirostatParams, SamplingDefaults, SamplingParams, ScoreRequest,
    TokenScore,
};

use std::rc::Rc;

use crate::grammar::Grammar;

/// One prompt and the candidates to generate for it, which share its prefill.
#[derive(Debug, Clone)]
pub struct Generation {
    /// The prompt, with at least one position; token ids are below the vocabulary size.
    pub prompt: Prompt,
    /// The maximum number of tokens a candidate may get, already shortened to what the context can hold; 0 generates
    /// nothing.
    pub max_tokens: usize,
    /// The number of candidates, at least one. Candidate `i` draws with `(seed, i)`.
    pub candidates: u32,
    /// The parameters of the choice of each token.
    pub sampling: SamplingParams,
    /// The constraint on each candidate; each has its own matcher.
    pub constraint: Option<Grammar>,
    /// Rules that forbid tokens besides the constraint.
    pub rules: Option<Rc<TokenRules>>,
    /// The scores to report for each generated token.
    pub scores: Option<ScoreRequest>,
    /// Score the prompt too, with this many best tokens per position (raw mode).
    pub prompt_scores: Option<usize>,
    /// Ids that end a candidate with [`super::event::FinishReason::Stop`]: the model's end-of-text
    /// ids (unless `ignore_eos`) and single-token stop strings.
    pub stop_ids: Vec<u32>,
    /// The sources that its tokens may be guessed from. It changes how fast they come, not which.
    pub drafts: DraftRules,
}

impl Generation {
    /// Whether any token may be forbidden.
    pub(super) fn is_restricted(&self) -> bool {
        self.constraint.is_some() || self.rules.is_some()
    }

    /// The number of tokens that may be chosen after `chosen` before any may be forbidden. Afterwards each has to be seen before the
    /// next one is chosen.
    pub(super) fn free_tokens(&self, chosen: &[u32]) -> usize {
        match (&self.constraint, &self.rules) {
            (Some(_), _) => 0,
            (None, None) => usize::MAX,
            (None, Some(rules)) => rules.free_tokens(chosen),
        }
    }
}
