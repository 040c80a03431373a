//! The JSON of answers to `POST /chat/completions` (specification 18.5 to 18.7).

use std::rc::Rc;

use serde::Serialize;

use crate::api::json::to_json;
use crate::api::random_id;
use crate::api::routes::timings::Timings;
use crate::api::routes::token_logprobs::{ChatTokenLogprob, token_logprobs};
use crate::api::run::{Entry, Piece, StopReason, TokenCounts};
use crate::engine::event::FinishReason;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;

/// What a whole answer and all of its chunks have in common.
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
    /// Names their tokens.
    pub tokenizer: Rc<Tokenizer>,
}

/// A message of the assistant.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatCompletionMessage {
    #[cfg_attr(test, ts(type = "\"assistant\""))]
    role: &'static str,
    /// Null if the message consists of calls.
    content: Option<String>,
    /// Always null.
    refusal: Option<String>,
    /// What the model thought before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<ChatToolCall>>"))]
    tool_calls: Vec<ChatToolCall>,
}

/// A call that the model has written.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatToolCall {
    id: String,
    #[serde(rename = "type")]
    #[cfg_attr(test, ts(type = "\"function\""))]
    kind: &'static str,
    function: ChatFunctionCall,
}

/// The function of a [`ChatToolCall`].
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatFunctionCall {
    name: String,
    /// JSON text.
    arguments: String,
}

/// What a chunk adds to a message.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatDelta {
    /// Only in the first chunk of a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"assistant\""))]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<ChatToolCallDelta>>"))]
    tool_calls: Vec<ChatToolCallDelta>,
}

/// What a chunk adds to a call.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatToolCallDelta {
    /// The call, counted from 0.
    index: usize,
    /// Only in a call's first delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"function\""))]
    kind: Option<&'static str>,
    function: ChatFunctionDelta,
}

/// The function of a [`ChatToolCallDelta`].
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatFunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    name: Option<String>,
    /// Appended to the call's arguments.
    arguments: String,
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
    #[cfg_attr(test, ts(type = "\"stop\" | \"length\" | \"tool_calls\""))]
    finish_reason: Option<&'static str>,
    /// The stop string or stop id that ended it, otherwise null.
    stop_reason: Option<&'a StopReason>,
}

/// The new part of a choice.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatChunkChoice<'a> {
    index: usize,
    delta: ChatDelta,
    logprobs: Option<ChatLogprobs>,
    /// Null in all chunks of a choice but the last.
    #[cfg_attr(test, ts(type = "\"stop\" | \"length\" | \"tool_calls\" | null"))]
    finish_reason: Option<&'static str>,
    /// Only in the last chunk of a choice: the stop string or stop id that ended it, otherwise null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    stop_reason: Option<Option<&'a StopReason>>,
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
    /// Found in the prefix cache.
    cached_tokens: usize,
}

/// Details of the generated tokens.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatCompletionTokens {
    /// Those before the message.
    reasoning_tokens: usize,
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
    /// Only with `include_usage`, and null in chunks that hold no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    usage: Option<Option<ChatUsage>>,
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

impl ChatDelta {
    /// The parts in their order; text of one kind and arguments of one call are joined.
    fn new(parts: &[OutputPart]) -> ChatDelta {
        let mut delta = ChatDelta::default();
        let append = |text: &mut Option<String>, more: &str| {
            text.get_or_insert_default().push_str(more);
        };
        for part in parts {
            match part {
                OutputPart::Content(text) => append(&mut delta.content, text),
                OutputPart::Reasoning(text) => append(&mut delta.reasoning_content, text),
                OutputPart::CallStart { index, name } => delta.tool_calls.push(ChatToolCallDelta {
                    index: *index,
                    id: Some(random_id::tool_call_id()),
                    kind: Some("function"),
                    function: ChatFunctionDelta {
                        name: Some(name.clone()),
                        arguments: String::new(),
                    },
                }),
                OutputPart::CallArguments { index, json } => {
                    let calls = &mut delta.tool_calls;
                    match calls.iter_mut().rfind(|call| call.index == *index) {
                        Some(call) => call.function.arguments.push_str(json),
                        None => calls.push(ChatToolCallDelta {
                            index: *index,
                            id: None,
                            kind: None,
                            function: ChatFunctionDelta {
                                name: None,
                                arguments: json.clone(),
                            },
                        }),
                    }
                }
            }
        }
        delta
    }
}

impl ChatCompletionMessage {
    fn new(parts: &[OutputPart]) -> ChatCompletionMessage {
        let whole = ChatDelta::new(parts);
        let call = |call: ChatToolCallDelta| ChatToolCall {
            id: call.id.unwrap_or_default(),
            kind: "function",
            function: ChatFunctionCall {
                name: call.function.name.unwrap_or_default(),
                arguments: call.function.arguments,
            },
        };
        let tool_calls: Vec<_> = whole.tool_calls.into_iter().map(call).collect();
        ChatCompletionMessage {
            role: "assistant",
            content: match tool_calls.is_empty() {
                true => Some(whole.content.unwrap_or_default()),
                false => whole.content,
            },
            refusal: None,
            reasoning_content: whole.reasoning_content,
            tool_calls,
        }
    }
}

impl Head {
    fn logprobs(&self, entries: &[Entry]) -> Option<ChatLogprobs> {
        self.has_logprobs.then(|| ChatLogprobs {
            content: token_logprobs(&self.tokenizer, entries),
            refusal: None,
        })
    }

    fn chunk(
        &self,
        choices: Vec<ChatChunkChoice<'_>>,
        usage: Option<Option<ChatUsage>>,
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
            timings,
        })
    }
}

fn finish_reason(piece: &Piece) -> Option<&'static str> {
    let finish = piece.finish.as_ref()?;
    Some(match finish.reason {
        FinishReason::Length => "length",
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
    let choices = choices.iter().enumerate().map(|(index, piece)| ChatChoice {
        index,
        message: ChatCompletionMessage::new(&piece.parts),
        logprobs: head.logprobs(&piece.entries),
        finish_reason: finish_reason(piece),
        stop_reason: stop_reason(piece),
    });
    to_json(&ChatCompletion {
        id: &head.id,
        object: "chat.completion",
        created: head.created_s,
        model: &head.model,
        system_fingerprint: &head.system_fingerprint,
        choices: choices.collect(),
        usage: ChatUsage::new(counts),
        timings,
    })
}

/// The chunks of a piece: the role before the first one, and the reason of the end after the last one. `has_usage`: the
/// member `usage` exists, though it may be null.
pub(super) fn chunks(head: &Head, chunk: &Chunk<'_>, has_usage: bool) -> Vec<Vec<u8>> {
    let piece = chunk.piece;
    let new = |delta: ChatDelta| ChatChunkChoice {
        index: chunk.index,
        delta,
        logprobs: None,
        finish_reason: None,
        stop_reason: None,
    };
    let mut choices = Vec::with_capacity(3);
    if chunk.is_first {
        choices.push(new(ChatDelta {
            role: Some("assistant"),
            content: Some(String::new()),
            ..ChatDelta::default()
        }));
    }
    if !piece.parts.is_empty() || !piece.entries.is_empty() {
        choices.push(ChatChunkChoice {
            logprobs: head.logprobs(&piece.entries),
            ..new(ChatDelta::new(&piece.parts))
        });
    }
    if piece.finish.is_some() {
        choices.push(ChatChunkChoice {
            finish_reason: finish_reason(piece),
            stop_reason: Some(stop_reason(piece)),
            ..new(ChatDelta::default())
        });
    }
    let usage = has_usage.then(|| chunk.counts.map(ChatUsage::new));
    let is_end = |choice: &ChatChunkChoice<'_>| choice.finish_reason.is_some();
    let choices = choices.into_iter();
    choices
        .map(|choice| {
            let timings = chunk.timings.filter(|_| is_end(&choice));
            head.chunk(vec![choice], usage, timings)
        })
        .collect()
}

/// The chunk that ends a stream with token counts.
pub(super) fn usage_chunk(head: &Head, counts: TokenCounts) -> Vec<u8> {
    head.chunk(Vec::new(), Some(Some(ChatUsage::new(counts))), None)
}
