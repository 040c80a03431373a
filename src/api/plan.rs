//! A plan: what every route that generates text makes of its JSON, and everything that running it needs.
//! It is validated as far as possible without a model.

use super::fields::images::RequestImages;
use super::fields::{
    Constraint, Conversation, Drafting, KeptTokens, Length, Logprobs, Prompt, PromptTokens,
    Restrictions, Sampling, ThinkingBudget,
};
use super::models::{ReadyModel, ToolPrompts};
use super::switches::LogprobsShape;
use crate::engine::generation::LogprobsMode;

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
    /// Whether the prompt's text comes before the completion.
    pub echo: bool,
    /// The number of tokens at the prompt's end that the echo has; `None`: all.
    pub echo_last: Option<usize>,
    /// Whether the raw prompt and the raw completion are reported.
    pub raw_output: bool,
    /// Whether times are reported.
    pub perf_metrics: bool,
    /// Choices returned per prompt.
    pub n: usize,
    /// Candidates generated per prompt, at least `n`.
    pub best_of: usize,
    pub logprobs: Logprobs,
    pub prompt_tokens: PromptTokens,
    pub restrictions: Restrictions,
    /// The text that the completion is expected to be.
    pub drafting: Drafting,
    pub sampling: Sampling,
    pub constraint: Constraint,
    /// The completion is a message of the assistant, read as reasoning, content and calls. `None`: it is text.
    pub message: Option<MessagePlan>,
    /// A run that continues an earlier one returns what that delivered once more, marked as such.
    pub repeats_delivered: bool,
}

/// The options that every route of messages reads.
#[derive(Debug)]
pub(super) struct MessageRequest {
    /// A model's id or the alias `default`.
    pub model: String,
    pub conversation: Conversation,
    pub length: Length,
    pub restrictions: Restrictions,
    pub drafting: Drafting,
    pub sampling: Sampling,
    pub constraint: Constraint,
}

impl Plan {
    /// The plan of one message that continues a conversation, without log-probabilities.
    pub(super) fn of_message(mut request: MessageRequest) -> Plan {
        let images = request.conversation.images.take();
        let parallel_calls = request.conversation.parallel_tool_calls;
        Plan {
            model: request.model,
            prompts: vec![Prompt::Conversation(Box::new(request.conversation))],
            images,
            suffix: Suffix::None,
            length: request.length,
            echo: false,
            echo_last: None,
            raw_output: false,
            perf_metrics: false,
            n: 1,
            best_of: 1,
            logprobs: Logprobs {
                top: None,
                mode: LogprobsMode::Raw,
                shape: LogprobsShape::Content,
                tokens_as_ids: false,
                token_ids: false,
                prompt: None,
            },
            // The chat template writes the special tokens.
            prompt_tokens: PromptTokens {
                add_special: false,
                kept: KeptTokens::All,
            },
            restrictions: request.restrictions,
            drafting: request.drafting,
            sampling: request.sampling,
            constraint: request.constraint,
            message: Some(MessagePlan {
                parallel_calls,
                thinking_budget: None,
            }),
            repeats_delivered: false,
        }
    }
}

/// The options for reading a message of the assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagePlan {
    /// It may hold several calls. `None`: as suits the model.
    pub parallel_calls: Option<bool>,
    /// The most tokens of reasoning; `None`: as many as the message has.
    pub thinking_budget: Option<ThinkingBudget>,
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
    /// No text follows.
    None,
    /// This text follows the text of every choice, as it is; not empty.
    Append(String),
    /// The completion fills the gap between the prompt, which is text, and this; not empty.
    FillInMiddle(String),
}
