//! A plan: what every route that generates text makes of its JSON, and everything that running it needs.
//! It is validated as far as possible without a model.

use super::fields::images::RequestImages;
use super::fields::{
    Constraint, Drafting, Length, Logprobs, Prompt, PromptTokens, Restrictions, Sampling,
};
use super::models::{ReadyModel, ToolPrompts};

/// Text to generate.
#[derive(Debug)]
pub(super) struct Plan {
    /// A model's id or the alias `default`.
    pub model: String,
    /// The prompts, at least one.
    pub prompts: Vec<Prompt>,
    /// Images of `prompts` that are no conversations.
    pub images: RequestImages,
    pub suffix: Suffix,
    pub length: Length,
    /// Put the prompt's text before the completion.
    pub echo: bool,
    /// If set, the echo has only the text of this many tokens, counted from the prompt's end.
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
    /// What the completion is expected to be.
    pub drafting: Drafting,
    pub sampling: Sampling,
    pub constraint: Constraint,
    /// The completion is a message of the assistant, read as reasoning, content and calls. `None`: it is text.
    pub message: Option<MessagePlan>,
    /// A run that continues an earlier one returns what that delivered once more, marked as such.
    pub repeats_delivered: bool,
}

/// The options for reading a message of the assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagePlan {
    /// It may hold several calls. `None`: as suits the model.
    pub parallel_calls: Option<bool>,
    /// The most tokens of reasoning; `None`: as many as the message has.
    pub reasoning_tokens: Option<usize>,
}

impl MessagePlan {
    /// Whether it may hold several calls. A model that was not trained with tools does not stop after the first one by itself.
    pub(super) fn allows_parallel_calls(self, model: &ReadyModel) -> bool {
        self.parallel_calls
            .unwrap_or(model.tools != Some(ToolPrompts::Generic))
    }
}

/// The text that follows the prompt and the completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Suffix {
    /// Nothing.
    None,
    /// Goes after the text of every choice, as it is; not empty.
    Append(String),
    /// The completion fills the gap between the prompt, which is text, and this; not empty.
    FillInMiddle(String),
}
