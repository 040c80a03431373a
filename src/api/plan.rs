//! A plan: what every route that generates text makes of its JSON, and everything that running it needs.
//! It is validated as far as possible without a model.

use super::fields::{Constraint, Length, Prompt, Sampling};
use crate::engine::generation::LogprobsMode;

/// Text to generate.
#[derive(Debug)]
pub(super) struct Plan {
    /// A model's id or the alias `default`.
    pub model: String,
    /// At least one.
    pub prompts: Vec<Prompt>,
    pub suffix: Suffix,
    pub length: Length,
    /// Put the prompt's text before the completion.
    pub echo: bool,
    /// Choices returned per prompt.
    pub n: usize,
    /// Candidates generated per prompt, at least `n`.
    pub best_of: usize,
    /// Best tokens listed per token; `None`: no log-probabilities at all.
    pub logprobs: Option<usize>,
    pub logprobs_mode: LogprobsMode,
    /// Name listed tokens by their ids, and report the ids.
    pub tokens_as_ids: bool,
    pub sampling: Sampling,
    pub constraint: Constraint,
    /// The completion is a message of the assistant, read as reasoning, content and calls. `None`: it is text.
    pub message: Option<MessagePlan>,
}

/// How a message of the assistant is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagePlan {
    /// It may hold several calls.
    pub parallel_calls: bool,
}

/// What comes after the prompt and the completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Suffix {
    /// Nothing.
    None,
    /// Goes after the text of every choice, as it is; not empty.
    Append(String),
    /// The completion fills the gap between the prompt, which is text, and this; not empty.
    FillInMiddle(String),
}
