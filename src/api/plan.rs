//! A plan: what every route that generates text makes of its JSON, and everything that running it needs.
//! It is validated as far as possible without a model.

use super::fields::images::RequestImages;
use super::fields::{Constraint, Length, Logprobs, Prompt, PromptTokens, Restrictions, Sampling};

/// Text to generate.
#[derive(Debug)]
pub(super) struct Plan {
    /// A model's id or the alias `default`.
    pub model: String,
    /// At least one.
    pub prompts: Vec<Prompt>,
    /// Images of `prompts` that are no conversations.
    pub images: RequestImages,
    pub suffix: Suffix,
    pub length: Length,
    /// Put the prompt's text before the completion.
    pub echo: bool,
    /// Only the text of this many tokens, counted from the prompt's end.
    pub echo_last: Option<usize>,
    /// Report what the model was given and what it generated.
    pub raw_output: bool,
    /// Report times.
    pub perf_metrics: bool,
    /// Choices returned per prompt.
    pub n: usize,
    /// Candidates generated per prompt, at least `n`.
    pub best_of: usize,
    pub logprobs: Logprobs,
    pub prompt_tokens: PromptTokens,
    pub restrictions: Restrictions,
    pub sampling: Sampling,
    pub constraint: Constraint,
    /// The completion is a message of the assistant, read as reasoning, content and calls. `None`: it is text.
    pub message: Option<MessagePlan>,
    /// A run that continues an earlier one returns what that delivered once more, marked as such.
    pub repeats_delivered: bool,
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
