//! The JSON of a response and its items (specification 20.3).

use serde::Serialize;
use serde_json::Value;

use super::echo::Echo;
use crate::api::routes::token_logprobs::ChatTokenLogprob;
use crate::api::run::TokenCounts;
use crate::engine::generation::SamplingParams;

/// The state of a response or an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseStatus"))]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    InProgress,
    Completed,
    /// It ends where the tokens ended.
    Incomplete,
    Failed,
}

/// A response.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResponseObject<'a> {
    pub id: &'a str,
    #[cfg_attr(test, ts(type = "\"response\""))]
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: u64,
    /// Unix seconds; null unless the response is completed.
    pub completed_at: Option<u64>,
    pub status: Status,
    pub error: Option<ResponseError<'a>>,
    pub incomplete_details: Option<IncompleteDetails>,
    /// The model's id.
    pub model: &'a str,
    /// Changes with anything that the output depends on.
    pub system_fingerprint: &'a str,
    pub output: &'a [ResponseItem],
    /// Null until the response is over.
    pub usage: Option<ResponseUsage>,
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    pub sampling: UsedSampling,
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    pub echo: &'a Echo,
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    pub constants: Constants,
}

/// The sampling values that are in use, whether the request gives them or not.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseSampling"))]
pub(super) struct UsedSampling {
    temperature: f32,
    top_p: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
}

impl UsedSampling {
    pub(super) fn new(params: &SamplingParams) -> UsedSampling {
        UsedSampling {
            temperature: params.temperature,
            top_p: params.top_p,
            frequency_penalty: params.frequency_penalty,
            presence_penalty: params.presence_penalty,
        }
    }
}

/// Members that are the same in all responses.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseConstants"))]
pub(super) struct Constants {
    #[cfg_attr(test, ts(type = "false"))]
    background: bool,
    #[cfg_attr(test, ts(type = "null"))]
    previous_response_id: Option<()>,
    #[cfg_attr(test, ts(type = "\"default\""))]
    service_tier: &'static str,
    #[cfg_attr(test, ts(type = "false"))]
    store: bool,
    #[cfg_attr(test, ts(type = "\"disabled\""))]
    truncation: &'static str,
}

pub(super) const CONSTANTS: Constants = Constants {
    background: false,
    previous_response_id: None,
    service_tier: "default",
    store: false,
    truncation: "disabled",
};

/// The error of a response that failed.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResponseError<'a> {
    pub code: &'a str,
    pub message: &'a str,
}

/// The reason why a response is incomplete.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseIncompleteDetails"))]
pub(super) struct IncompleteDetails {
    #[cfg_attr(test, ts(type = "\"max_output_tokens\""))]
    pub reason: &'static str,
}

/// Token counts of a response.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ResponseUsage {
    input_tokens: usize,
    input_tokens_details: InputTokens,
    output_tokens: usize,
    output_tokens_details: OutputTokens,
    total_tokens: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseInputTokens"))]
struct InputTokens {
    /// The tokens that were found in the KV cache.
    cached_tokens: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseOutputTokens"))]
struct OutputTokens {
    /// Number of tokens up to the last one of reasoning.
    reasoning_tokens: usize,
}

impl ResponseUsage {
    pub(super) fn new(counts: TokenCounts) -> ResponseUsage {
        ResponseUsage {
            input_tokens: counts.prompt,
            input_tokens_details: InputTokens {
                cached_tokens: counts.cached,
            },
            output_tokens: counts.completion,
            output_tokens_details: OutputTokens {
                reasoning_tokens: counts.reasoning,
            },
            total_tokens: counts.prompt + counts.completion,
        }
    }
}

/// An item of the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseItem {
    Reasoning {
        id: String,
        status: Status,
        /// Always empty.
        #[cfg_attr(test, ts(type = "never[]"))]
        summary: [Value; 0],
        /// One part.
        #[cfg_attr(
            test,
            ts(type = "Extract<ResponsePart, { type: \"reasoning_text\" }>[]")
        )]
        content: Vec<ResponsePart>,
        /// The reasoning, to be sent back: with `reasoning.encrypted_content` in `include`, once the item is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        encrypted_content: Option<String>,
    },
    Message {
        id: String,
        status: Status,
        #[cfg_attr(test, ts(type = "\"assistant\""))]
        role: &'static str,
        /// One part.
        #[cfg_attr(test, ts(type = "Extract<ResponsePart, { type: \"output_text\" }>[]"))]
        content: Vec<ResponsePart>,
    },
    FunctionCall {
        id: String,
        status: Status,
        call_id: String,
        name: String,
        /// JSON text.
        arguments: String,
    },
}

/// A part of an item's content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponsePart {
    ReasoningText {
        text: String,
    },
    OutputText {
        text: String,
        /// Always empty.
        #[cfg_attr(test, ts(type = "never[]"))]
        annotations: [Value; 0],
        /// Empty unless requested.
        logprobs: Vec<ChatTokenLogprob>,
    },
}
