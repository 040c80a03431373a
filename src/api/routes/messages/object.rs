//! The JSON of messages in Anthropic's form and of the events of a stream (specification 22.3 and 22.4).

use serde::Serialize;
use serde_json::Value;

use crate::api::http;
use crate::api::json::to_json;
use crate::api::run::TokenCounts;

/// A message of the assistant.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct MessageObject<'a> {
    pub id: &'a str,
    #[serde(rename = "type")]
    #[cfg_attr(test, ts(type = "\"message\""))]
    pub kind: &'static str,
    #[cfg_attr(test, ts(type = "\"assistant\""))]
    pub role: &'static str,
    /// The model's id.
    pub model: &'a str,
    pub content: &'a [Block],
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    pub end: MessageEnd,
    pub usage: MessageUsage,
}

/// The end of a message; the members are null until it has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct MessageEnd {
    pub stop_reason: Option<StopReason>,
    /// The stop sequence that ended it, if one did.
    pub stop_sequence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageStopReason"))]
#[serde(rename_all = "snake_case")]
pub(super) enum StopReason {
    EndTurn,
    MaxTokens,
    StopSequence,
    ToolUse,
}

/// A block of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageBlock"))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
        /// Always null.
        #[cfg_attr(test, ts(type = "null"))]
        citations: Option<()>,
    },
    Thinking {
        thinking: String,
        /// Always empty.
        signature: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// The arguments; of a call that was cut off, what is whole of them.
        #[cfg_attr(test, ts(type = "unknown"))]
        input: Value,
    },
}

/// Token counts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct MessageUsage {
    /// Tokens of the prompt, without those that were cached.
    input_tokens: usize,
    /// Always 0.
    cache_creation_input_tokens: usize,
    /// Tokens of the prompt that were found in the KV cache.
    cache_read_input_tokens: usize,
    /// Tokens of the answer, including thinking.
    output_tokens: usize,
    output_tokens_details: OutputTokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageOutputTokens"))]
struct OutputTokens {
    /// Number of tokens up to the last one of thinking.
    thinking_tokens: usize,
}

impl MessageUsage {
    pub(super) fn new(counts: TokenCounts) -> MessageUsage {
        MessageUsage {
            input_tokens: counts.prompt.saturating_sub(counts.cached),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: counts.cached,
            output_tokens: counts.completion,
            output_tokens_details: OutputTokens {
                thinking_tokens: counts.reasoning,
            },
        }
    }
}

/// The part that an event appends to a block.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageBlockDelta"))]
#[serde(tag = "type")]
pub(super) enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    /// Text of the JSON of `input`.
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
}

/// An event of a streamed message.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageStreamEvent"))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event<'a> {
    MessageStart {
        message: MessageObject<'a>,
    },
    ContentBlockStart {
        index: usize,
        content_block: &'a Block,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta<'a>,
    },
    ContentBlockStop {
        index: usize,
    },
    /// The counts are those of the whole message.
    MessageDelta {
        delta: &'a MessageEnd,
        usage: MessageUsage,
    },
    MessageStop,
}

impl Event<'_> {
    /// The frame of the event.
    pub(super) fn frame(&self) -> Vec<u8> {
        let name = match self {
            Event::MessageStart { .. } => "message_start",
            Event::ContentBlockStart { .. } => "content_block_start",
            Event::ContentBlockDelta { .. } => "content_block_delta",
            Event::ContentBlockStop { .. } => "content_block_stop",
            Event::MessageDelta { .. } => "message_delta",
            Event::MessageStop => "message_stop",
        };
        http::named_event(name, &to_json(self))
    }
}
