//! The JSON of answers to `POST /chat/completions` (specification 18.5 to 18.7).

use std::borrow::Cow;
use std::rc::Rc;

use serde::Serialize;

use super::message::{ChatCompletionMessage, ChatDelta};
use crate::api::json::to_json;
use crate::api::routes::prompt_listing::{ById, prompt_logprobs};
use crate::api::routes::timings::Timings;
use crate::api::routes::token_logprobs::{ChatTokenLogprob, token_logprobs};
use crate::api::run::{Entry, Piece, StopReason, TokenCounts};
use crate::engine::event::FinishReason;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;

/// The members that a whole answer and all of its chunks have in common.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub id: String,
    /// Unix seconds of the admission.
    pub created_s: u64,
    /// Canonical model id.
    pub model: String,
    pub system_fingerprint: String,
    /// Log-probabilities are requested.
    pub has_logprobs: bool,
    /// They name tokens by their ids.
    pub tokens_as_ids: bool,
    /// The ids of generated tokens are requested.
    pub has_token_ids: bool,
    /// Calls have the older form.
    pub has_functions: bool,
    /// Messages have their reasoning.
    pub includes_reasoning: bool,
    /// The beginning of the content of each message.
    pub echo: String,
    /// Names their tokens.
    pub tokenizer: Rc<Tokenizer>,
}

/// Log-probabilities of a message's tokens.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatLogprobs {
    content: Vec<ChatTokenLogprob>,
    /// Always null.
    #[cfg_attr(test, ts(type = "null"))]
    refusal: Option<()>,
}

/// One choice of a whole answer.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatChoice<'a> {
    index: usize,
    message: ChatCompletionMessage,
    logprobs: Option<ChatLogprobs>,
    #[cfg_attr(
        test,
        ts(type = "\"stop\" | \"length\" | \"tool_calls\" | \"function_call\"")
    )]
    finish_reason: Option<&'static str>,
    /// The stop string, expression or stop id that ended it, otherwise null.
    stop_reason: Option<&'a StopReason>,
    /// The generated ids; only with `return_tokens_as_token_ids` or `return_token_ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    token_ids: Option<&'a [u32]>,
}

/// The new part of a choice.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatChunkChoice<'a> {
    index: usize,
    delta: ChatDelta,
    logprobs: Option<ChatLogprobs>,
    /// Null in all chunks of a choice but the last.
    #[cfg_attr(
        test,
        ts(type = "\"stop\" | \"length\" | \"tool_calls\" | \"function_call\" | null")
    )]
    finish_reason: Option<&'static str>,
    /// The stop string, expression or stop id that ended the choice, otherwise null; only in its last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    stop_reason: Option<Option<&'a StopReason>>,
    /// The ids of the tokens that the chunk adds; only with `return_tokens_as_token_ids` or `return_token_ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    token_ids: Option<&'a [u32]>,
}

/// The list of the prompt in an answer; in a stream, the first chunk of a choice.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatPrompt<'a> {
    /// The ids of the prompt, with `return_token_ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    prompt_token_ids: Option<&'a [u32]>,
    /// The tokens listed for each token of the prompt by their ids, with `prompt_logprobs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "(Record<string, PromptLogprob> | null)[]"))]
    prompt_logprobs: Option<Vec<Option<ById<'a>>>>,
}

impl<'a> ChatPrompt<'a> {
    fn new(piece: Option<&'a Piece>) -> ChatPrompt<'a> {
        let prompt = piece.and_then(|piece| piece.prompt.as_ref());
        ChatPrompt {
            prompt_token_ids: prompt.and_then(|it| it.ids.as_deref()),
            prompt_logprobs: prompt.and_then(prompt_logprobs),
        }
    }
}

/// Token counts of a request.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatUsage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: ChatPromptTokens,
    completion_tokens_details: ChatCompletionTokens,
}

/// Details of the prompt's tokens.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatPromptTokens {
    /// The tokens that were found in the prefix cache.
    cached_tokens: usize,
}

/// Details of the generated tokens.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatCompletionTokens {
    /// Tokens before the content of the message.
    reasoning_tokens: usize,
    /// Tokens of `prediction` that are in the message; only with a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    accepted_prediction_tokens: Option<usize>,
    /// Tokens of `prediction` that are not in the message; only with a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    rejected_prediction_tokens: Option<usize>,
}

impl ChatUsage {
    fn new(counts: TokenCounts) -> ChatUsage {
        ChatUsage {
            prompt_tokens: counts.prompt,
            completion_tokens: counts.completion,
            total_tokens: counts.prompt + counts.completion,
            prompt_tokens_details: ChatPromptTokens {
                cached_tokens: counts.cached,
            },
            completion_tokens_details: ChatCompletionTokens {
                reasoning_tokens: counts.reasoning,
                accepted_prediction_tokens: counts.predicted.map(|it| it.accepted),
                rejected_prediction_tokens: counts.predicted.map(|it| it.rejected),
            },
        }
    }
}

/// An answer with whole messages.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ChatCompletion<'a> {
    id: &'a str,
    #[cfg_attr(test, ts(type = "\"chat.completion\""))]
    object: &'static str,
    /// Unix seconds.
    created: u64,
    /// The model's id.
    model: &'a str,
    /// Changes with anything that the output depends on.
    system_fingerprint: &'a str,
    choices: Vec<ChatChoice<'a>>,
    usage: ChatUsage,
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    prompt: ChatPrompt<'a>,
    /// Times of the request. Present with the switch `timings`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    timings: Option<Timings>,
}

/// A chunk of a streamed answer.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ChatCompletionChunk<'a> {
    id: &'a str,
    #[cfg_attr(test, ts(type = "\"chat.completion.chunk\""))]
    object: &'static str,
    /// Unix seconds.
    created: u64,
    /// The model's id.
    model: &'a str,
    /// Changes with anything that the output depends on.
    system_fingerprint: &'a str,
    choices: Vec<ChatChunkChoice<'a>>,
    /// The numbers of tokens, only with `include_usage`, and null in chunks that hold no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    usage: Option<Option<ChatUsage>>,
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    prompt: ChatPrompt<'a>,
    /// Times of the request. Present with the switch `timings`, in the last chunk that has a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    timings: Option<Timings>,
}

/// A part of a choice that a stream sends.
pub(super) struct Chunk<'a> {
    /// Index of the choice.
    pub index: usize,
    pub piece: &'a Piece,
    /// Nothing of the choice was sent before.
    pub is_first: bool,
    /// Running totals of the choice, if they are reported.
    pub counts: Option<TokenCounts>,
    /// Times of the request, if it is over and the switch `timings` is on.
    pub timings: Option<Timings>,
}

impl Head {
    /// The parts of a message that the answer has.
    fn shown_parts<'a>(&self, piece: &'a Piece) -> Cow<'a, [OutputPart]> {
        if self.includes_reasoning {
            return Cow::Borrowed(&piece.parts);
        }
        let is_shown = |part: &&OutputPart| !matches!(part, OutputPart::Reasoning(_));
        Cow::Owned(piece.parts.iter().filter(is_shown).cloned().collect())
    }

    fn logprobs(&self, entries: &[Entry]) -> Option<ChatLogprobs> {
        self.has_logprobs.then(|| ChatLogprobs {
            content: token_logprobs(&self.tokenizer, entries, self.tokens_as_ids),
            refusal: None,
        })
    }

    fn chunk(
        &self,
        choices: Vec<ChatChunkChoice<'_>>,
        usage: Option<Option<ChatUsage>>,
        prompt: ChatPrompt<'_>,
        timings: Option<Timings>,
    ) -> Vec<u8> {
        to_json(&ChatCompletionChunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created_s,
            model: &self.model,
            system_fingerprint: &self.system_fingerprint,
            choices,
            usage,
            prompt,
            timings,
        })
    }
}

fn finish_reason(head: &Head, piece: &Piece) -> Option<&'static str> {
    let finish = piece.finish.as_ref()?;
    Some(match finish.reason {
        FinishReason::Length => "length",
        FinishReason::Stop if finish.has_calls && head.has_functions => "function_call",
        FinishReason::Stop if finish.has_calls => "tool_calls",
        FinishReason::Stop => "stop",
    })
}

fn stop_reason(piece: &Piece) -> Option<&StopReason> {
    piece.finish.as_ref()?.stop_reason.as_ref()
}

/// A whole answer.
pub(super) fn whole(
    head: &Head,
    choices: &[Piece],
    counts: TokenCounts,
    timings: Option<Timings>,
) -> Vec<u8> {
    let prompt = ChatPrompt::new(choices.first());
    let choices = choices.iter().enumerate().map(|(index, piece)| ChatChoice {
        index,
        message: ChatCompletionMessage::new(
            &head.shown_parts(piece),
            head.has_functions,
            &head.echo,
        ),
        logprobs: head.logprobs(&piece.entries),
        finish_reason: finish_reason(head, piece),
        stop_reason: stop_reason(piece),
        token_ids: head.has_token_ids.then_some(&piece.token_ids),
    });
    to_json(&ChatCompletion {
        id: &head.id,
        object: "chat.completion",
        created: head.created_s,
        model: &head.model,
        system_fingerprint: &head.system_fingerprint,
        choices: choices.collect(),
        usage: ChatUsage::new(counts),
        prompt,
        timings,
    })
}

/// The chunks of a piece: the role and the echo before the first one, and the reason of the end after the last one.
/// `has_usage`: the member `usage` exists, though it may be null.
pub(super) fn chunks(head: &Head, chunk: &Chunk<'_>, has_usage: bool) -> Vec<Vec<u8>> {
    let piece = chunk.piece;
    let new = |delta: ChatDelta| ChatChunkChoice {
        index: chunk.index,
        delta,
        logprobs: None,
        finish_reason: None,
        stop_reason: None,
        token_ids: None,
    };
    let mut token_ids = head.has_token_ids.then_some(&*piece.token_ids);
    let mut choices = Vec::with_capacity(4);
    if chunk.is_first {
        choices.push(new(ChatDelta::beginning()));
        if !head.echo.is_empty() {
            choices.push(new(ChatDelta::of_content(&head.echo)));
        }
    }
    let parts = head.shown_parts(piece);
    let has_hidden_ids = head.has_token_ids && parts.len() < piece.parts.len();
    if !parts.is_empty() || !piece.entries.is_empty() || has_hidden_ids {
        choices.push(ChatChunkChoice {
            logprobs: head.logprobs(&piece.entries),
            token_ids: token_ids.take(),
            ..new(ChatDelta::new(&parts, head.has_functions))
        });
    }
    if piece.finish.is_some() {
        choices.push(ChatChunkChoice {
            finish_reason: finish_reason(head, piece),
            stop_reason: Some(stop_reason(piece)),
            token_ids,
            ..new(ChatDelta::default())
        });
    }
    let usage = has_usage.then(|| chunk.counts.map(ChatUsage::new));
    let is_end = |choice: &ChatChunkChoice<'_>| choice.finish_reason.is_some();
    let choices = choices.into_iter().enumerate();
    choices
        .map(|(number, choice)| {
            let timings = chunk.timings.filter(|_| is_end(&choice));
            let prompt = ChatPrompt::new((chunk.is_first && number == 0).then_some(piece));
            head.chunk(vec![choice], usage, prompt, timings)
        })
        .collect()
}

/// The chunk that ends a stream with token counts.
pub(super) fn usage_chunk(head: &Head, counts: TokenCounts) -> Vec<u8> {
    let prompt = ChatPrompt::default();
    head.chunk(Vec::new(), Some(Some(ChatUsage::new(counts))), prompt, None)
}
