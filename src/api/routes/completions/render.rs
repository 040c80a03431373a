//! The JSON of answers to `POST /completions` (specification 10.1, 10.3 and 10.6).

use serde::{Serialize, Serializer};

use super::logprobs::{LogprobsContent, ShapedLogprobs};
use super::usage::Usage;
use crate::api::json::to_json;
use crate::api::random_id;
use crate::api::routes::prompt_listing::{ById, prompt_logprobs};
use crate::api::routes::timings::Timings;
use crate::api::run::{PerfMetrics, Piece, RawOutput, StopReason, TokenCounts};
use crate::api::switches::LogprobsShape;
use crate::engine::event::FinishReason;
use crate::grammar;

/// The members that a whole answer and all of its chunks have in common.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub schema_url: Option<String>,
    pub id: String,
    /// Unix seconds of the admission.
    pub created_s: u64,
    /// Canonical model id.
    pub model: String,
    pub system_fingerprint: String,
}

/// One choice of a completion; in a chunk, the part of it that is new.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct CompletionChoice<'a> {
    index: usize,
    text: &'a str,
    /// Null if they were not requested.
    logprobs: Option<ShapedLogprobs<'a>>,
    /// The generated ids; only with `return_tokens_as_token_ids` or `return_token_ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    token_ids: Option<&'a [u32]>,
    /// The ids of the prompt, with `return_token_ids`; in a stream in the choice's first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    prompt_token_ids: Option<&'a [u32]>,
    /// The tokens listed for each token of the prompt by their ids, with `prompt_logprobs`; in a stream in the choice's first
    /// chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "(Record<string, PromptLogprob> | null)[]"))]
    prompt_logprobs: Option<Vec<Option<ById<'a>>>>,
    /// Null in all chunks of a choice but the last.
    #[serde(serialize_with = "finish_reason")]
    #[cfg_attr(test, ts(type = "\"stop\" | \"length\" | null"))]
    finish_reason: Option<FinishReason>,
    /// The stop string or stop id that ended the choice, otherwise null; only in its last part.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    stop_reason: Option<Option<&'a StopReason>>,
    /// A complete call of one of the request's tools; in a stream in the choice's last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "ToolCall[]"))]
    tool_calls: Option<[ToolCall<'a>; 1]>,
    /// The text that the model was given and the text that it generated, with `raw_output`; in a stream in the choice's last chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    raw_output: Option<RawOutputMember<'a>>,
}

/// The prompt as the model received it, and what it generated.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "RawOutput"))]
struct RawOutputMember<'a> {
    prompt_fragments: [&'a str; 1],
    prompt_token_ids: &'a [u32],
    /// The generated text with special tokens.
    completion: &'a str,
    completion_token_ids: &'a [u32],
    /// Null without `logprobs`.
    completion_logprobs: Option<LogprobsContent<'a>>,
}

impl<'a> RawOutputMember<'a> {
    fn new(raw: &'a RawOutput) -> RawOutputMember<'a> {
        RawOutputMember {
            prompt_fragments: [&raw.prompt],
            prompt_token_ids: &raw.prompt_ids,
            completion: &raw.completion,
            completion_token_ids: &raw.completion_ids,
            completion_logprobs: raw.entries.as_deref().map(LogprobsContent::new),
        }
    }
}

/// Times of a request in seconds, and its tokens.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
struct PerfMetricsMember {
    prompt_tokens: usize,
    cached_prompt_tokens: usize,
    server_time_to_first_token: f64,
    server_processing_time: f64,
}

impl PerfMetricsMember {
    fn new(metrics: PerfMetrics) -> PerfMetricsMember {
        PerfMetricsMember {
            prompt_tokens: metrics.counts.prompt,
            cached_prompt_tokens: metrics.counts.cached,
            server_time_to_first_token: metrics.first_token_ms as f64 / 1000.0,
            server_processing_time: metrics.total_ms as f64 / 1000.0,
        }
    }
}

/// A call that the model has written.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ToolCall<'a> {
    id: String,
    #[serde(rename = "type")]
    #[cfg_attr(test, ts(type = "\"function\""))]
    kind: &'a str,
    function: FunctionCall<'a>,
}

/// The function of a [`ToolCall`].
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct FunctionCall<'a> {
    name: &'a str,
    /// JSON text.
    arguments: &'a str,
}

/// The optional members that an answer and its choices have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Members {
    pub logprobs: Option<LogprobsShape>,
    pub token_ids: bool,
    pub perf_metrics: bool,
    pub timings: bool,
}

impl<'a> CompletionChoice<'a> {
    /// A whole choice, or a chunk's part of it.
    fn new(index: usize, piece: &'a Piece, members: Members) -> CompletionChoice<'a> {
        let finish = piece.finish.as_ref();
        CompletionChoice {
            index,
            text: &piece.text,
            logprobs: (members.logprobs).map(|shape| ShapedLogprobs::new(&piece.entries, shape)),
            token_ids: members.token_ids.then_some(&piece.token_ids),
            prompt_token_ids: piece.prompt.as_ref().and_then(|it| it.ids.as_deref()),
            prompt_logprobs: piece.prompt.as_ref().and_then(prompt_logprobs),
            finish_reason: finish.map(|finish| finish.reason),
            stop_reason: finish.map(|finish| finish.stop_reason.as_ref()),
            tool_calls: finish
                .and_then(|finish| finish.tool_call.as_ref())
                .map(|call| [ToolCall::new(call)]),
            raw_output: finish
                .and_then(|finish| finish.raw.as_deref())
                .map(RawOutputMember::new),
        }
    }
}

impl<'a> ToolCall<'a> {
    fn new(call: &'a grammar::ToolCall) -> ToolCall<'a> {
        ToolCall {
            id: random_id::tool_call_id(),
            kind: "function",
            function: FunctionCall {
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }
}

/// The member `usage` of a body: `None` leaves it out, `Some(None)` is null.
type UsageMember = Option<Option<Usage>>;

/// A completion, or a chunk of a streamed one.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Completion<'a> {
    /// The URL of the switch `schemaUrl`, if it is set.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    schema: Option<&'a str>,
    id: &'a str,
    #[cfg_attr(test, ts(type = "\"text_completion\""))]
    object: &'a str,
    /// Unix seconds.
    created: u64,
    /// The model's id.
    model: &'a str,
    /// Changes with anything that the output depends on.
    system_fingerprint: &'a str,
    choices: &'a [CompletionChoice<'a>],
    /// The numbers of tokens; in a stream only with `include_usage`, and null in chunks that hold no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    usage: UsageMember,
    /// Times and counts, with `perf_metrics_in_response`; in a stream in the last chunk that has a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    perf_metrics: Option<PerfMetricsMember>,
    /// Times of the request. Present with the switch `timings`; a stream has them in the last chunk that has a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    timings: Option<Timings>,
}

/// A part of a choice that a stream sends.
pub(super) struct Chunk<'a> {
    /// Index of the choice.
    pub index: usize,
    pub piece: &'a Piece,
    /// Running totals of the choice, if they are reported.
    pub counts: Option<TokenCounts>,
    /// Times of the request. Present once it is over.
    pub perf: Option<PerfMetrics>,
}

/// A whole answer.
pub(super) fn whole(
    head: &Head,
    choices: &[Piece],
    perf: PerfMetrics,
    members: Members,
) -> Vec<u8> {
    let choices = choices.iter().enumerate();
    let choices: Vec<_> = choices
        .map(|(index, choice)| CompletionChoice::new(index, choice, members))
        .collect();
    let usage = Some(Some(Usage::new(perf.counts)));
    completion(head, &choices, usage, Some((perf, members)))
}

/// A chunk of a streamed answer. `has_usage`: the member `usage` exists, though it may be null.
pub(super) fn chunk(head: &Head, chunk: Chunk<'_>, has_usage: bool, members: Members) -> Vec<u8> {
    let choice = CompletionChoice::new(chunk.index, chunk.piece, members);
    let usage = has_usage.then(|| chunk.counts.map(Usage::new));
    completion(head, &[choice], usage, chunk.perf.zip(Some(members)))
}

/// The chunk that ends a stream with token counts.
pub(super) fn usage_chunk(head: &Head, counts: TokenCounts) -> Vec<u8> {
    completion(head, &[], Some(Some(Usage::new(counts))), None)
}

fn completion(
    head: &Head,
    choices: &[CompletionChoice<'_>],
    usage: UsageMember,
    perf: Option<(PerfMetrics, Members)>,
) -> Vec<u8> {
    let if_wanted = |wants: fn(&Members) -> bool| {
        let wanted = perf.as_ref().filter(|(_, members)| wants(members));
        wanted.map(|(perf, _)| *perf)
    };
    to_json(&Completion {
        schema: head.schema_url.as_deref(),
        id: &head.id,
        object: "text_completion",
        created: head.created_s,
        model: &head.model,
        system_fingerprint: &head.system_fingerprint,
        choices,
        usage,
        perf_metrics: if_wanted(|members| members.perf_metrics).map(PerfMetricsMember::new),
        timings: if_wanted(|members| members.timings).map(Timings::new),
    })
}

// serde's `serialize_with` dictates the signature.
#[allow(clippy::ref_option)]
fn finish_reason<S: Serializer>(
    reason: &Option<FinishReason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match reason {
        None => serializer.serialize_none(),
        Some(FinishReason::Stop) => serializer.serialize_str("stop"),
        Some(FinishReason::Length) => serializer.serialize_str("length"),
    }
}

#[cfg(test)]
mod tests;
