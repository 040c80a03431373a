//! The JSON of answers to `POST /completions` (specification 10.1, 10.3 and 10.6).

use serde::{Serialize, Serializer};

use crate::api::json::to_json;
use crate::api::random_id;
use crate::api::routes::prompt_listing::{ById, prompt_logprobs};
use crate::api::routes::timings::Timings;
use crate::api::run::{Entry, PerfMetrics, Piece, RawOutput, StopReason, TokenCounts, TopEntry};
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
    /// What the model was given and what it generated, with `raw_output`; in a stream in the choice's last chunk.
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

/// Log-probabilities in the form that the request and the switch `logprobsShape` ask for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
enum ShapedLogprobs<'a> {
    Arrays(Logprobs<'a>),
    Content(LogprobsContent<'a>),
}

impl<'a> ShapedLogprobs<'a> {
    fn new(entries: &'a [Entry], shape: LogprobsShape) -> ShapedLogprobs<'a> {
        match shape {
            LogprobsShape::Arrays => ShapedLogprobs::Arrays(Logprobs::new(entries)),
            LogprobsShape::Content => ShapedLogprobs::Content(LogprobsContent::new(entries)),
        }
    }
}

/// Log-probabilities: one object per token.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct LogprobsContent<'a> {
    content: Vec<ContentEntry<'a>>,
}

/// A token with its log-probability.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ContentEntry<'a> {
    token: &'a str,
    /// Null for the first token of an echoed prompt.
    logprob: Option<f32>,
    /// The bytes of its text.
    bytes: &'a [u8],
    top_logprobs: Vec<ContentTop<'a>>,
}

/// One of the most likely tokens.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ContentTop<'a> {
    token: &'a str,
    logprob: f32,
    bytes: &'a [u8],
}

impl<'a> LogprobsContent<'a> {
    fn new(entries: &'a [Entry]) -> LogprobsContent<'a> {
        let top = |top: &'a TopEntry| ContentTop {
            token: &top.token,
            logprob: top.logprob,
            bytes: &top.bytes,
        };
        let entry = |entry: &'a Entry| ContentEntry {
            token: &entry.token,
            logprob: entry.logprob,
            bytes: &entry.bytes,
            top_logprobs: entry.top.iter().flatten().map(top).collect(),
        };
        LogprobsContent {
            content: entries.iter().map(entry).collect(),
        }
    }
}

/// Log-probabilities: four arrays of equal length, one entry per token.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Logprobs<'a> {
    tokens: Vec<&'a str>,
    token_logprobs: Vec<Option<f32>>,
    #[cfg_attr(test, ts(type = "(Record<string, number> | null)[]"))]
    top_logprobs: Vec<Option<Top<'a>>>,
    /// Code points before each token.
    text_offset: Vec<usize>,
}

/// A map from names to log-probabilities; clients rely on its order, best first.
#[derive(Debug)]
struct Top<'a>(&'a [TopEntry]);

impl Serialize for Top<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|top| (&top.token, top.logprob)))
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

impl<'a> Logprobs<'a> {
    fn new(entries: &'a [Entry]) -> Logprobs<'a> {
        let top = |entry: &'a Entry| entry.top.as_deref().map(Top);
        Logprobs {
            tokens: entries.iter().map(|entry| &*entry.token).collect(),
            token_logprobs: entries.iter().map(|entry| entry.logprob).collect(),
            top_logprobs: entries.iter().map(top).collect(),
            text_offset: entries.iter().map(|entry| entry.text_offset).collect(),
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

/// Token counts of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    /// The cached tokens of the prompt, if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    prompt_tokens_details: Option<PromptTokensDetails>,
    /// Details of the completion tokens, only with a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    completion_tokens_details: Option<CompletionTokensDetails>,
}

/// Details of the prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct PromptTokensDetails {
    /// Found in the prefix cache.
    cached_tokens: usize,
}

/// Details of the generated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct CompletionTokensDetails {
    /// Tokens of the prediction that are in the completion.
    accepted_prediction_tokens: usize,
    /// Tokens of the prediction that are not in the completion.
    rejected_prediction_tokens: usize,
}

impl Usage {
    fn new(counts: TokenCounts) -> Usage {
        let cached_tokens = counts.cached;
        Usage {
            prompt_tokens: counts.prompt,
            completion_tokens: counts.completion,
            total_tokens: counts.prompt + counts.completion,
            prompt_tokens_details: (cached_tokens > 0)
                .then_some(PromptTokensDetails { cached_tokens }),
            completion_tokens_details: counts.predicted.map(|it| CompletionTokensDetails {
                accepted_prediction_tokens: it.accepted,
                rejected_prediction_tokens: it.rejected,
            }),
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
mod tests {
    use super::*;
    use crate::api::run::Finish;

    fn head(schema_url: Option<&str>) -> Head {
        Head {
            schema_url: schema_url.map(str::to_owned),
            id: "cmpl-1".into(),
            created_s: 7,
            model: "m".into(),
            system_fingerprint: "fp_0".into(),
        }
    }

    const NONE: Members = Members {
        logprobs: None,
        token_ids: false,
        perf_metrics: false,
        timings: false,
    };

    fn finish(reason: FinishReason) -> Finish {
        Finish {
            reason,
            stop_reason: None,
            tool_call: None,
            has_calls: false,
            mean_logprob: None,
            raw: None,
        }
    }

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn keys_and_their_order() {
        let piece = Piece {
            text: "a\n".into(),
            finish: Some(finish(FinishReason::Length)),
            ..Piece::default()
        };
        let choice = CompletionChoice::new(0, &piece, NONE);
        let usage = Some(Some(Usage::new(TokenCounts {
            prompt: 2,
            cached: 0,
            completion: 3,
            reasoning: 0,
            predicted: None,
        })));
        assert_eq!(
            text(completion(&head(None), &[choice], usage, None)),
            r#"{"id":"cmpl-1","object":"text_completion","created":7,"model":"m","system_fingerprint":"fp_0","choices":[{"index":0,"text":"a\n","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}"#
        );
    }

    fn top(token: &str, logprob: f32) -> TopEntry {
        TopEntry {
            token: token.into(),
            bytes: token.as_bytes().to_vec(),
            logprob,
        }
    }

    #[test]
    fn logprobs_as_content() {
        let entry = |logprob: Option<f32>| Entry {
            token: "b".into(),
            bytes: b"b".to_vec(),
            logprob,
            top: logprob.map(|logprob| vec![top("\n", -0.05), top("b", logprob)]),
            ..Entry::default()
        };
        let piece = Piece {
            entries: vec![entry(None), entry(Some(-0.5))],
            ..Piece::default()
        };
        let members = Members {
            logprobs: Some(LogprobsShape::Content),
            ..NONE
        };
        let choice = text(to_json(&CompletionChoice::new(0, &piece, members)));
        let expected = r#""logprobs":{"content":[{"token":"b","logprob":null,"bytes":[98],"top_logprobs":[]},{"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[{"token":"\n","logprob":-0.05,"bytes":[10]},{"token":"b","logprob":-0.5,"bytes":[98]}]}]}"#;
        assert!(choice.contains(expected), "{choice}");
    }

    #[test]
    fn optional_members() {
        let mut piece = Piece {
            entries: vec![
                Entry {
                    token: "a".into(),
                    bytes: b"a".to_vec(),
                    logprob: None,
                    top: None,
                    text_offset: 0,
                    ..Entry::default()
                },
                Entry {
                    token: "b".into(),
                    bytes: b"b".to_vec(),
                    logprob: Some(-0.1),
                    top: Some(vec![top("z", -0.05), top("b", -0.1)]),
                    text_offset: 1,
                    ..Entry::default()
                },
            ],
            token_ids: vec![7],
            ..Piece::default()
        };
        let all = Members {
            logprobs: Some(LogprobsShape::Arrays),
            token_ids: true,
            ..NONE
        };
        assert_eq!(
            text(to_json(&CompletionChoice::new(3, &piece, all))),
            r#"{"index":3,"text":"","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.1],"top_logprobs":[null,{"z":-0.05,"b":-0.1}],"text_offset":[0,1]},"token_ids":[7],"finish_reason":null}"#
        );
        piece.finish = Some(Finish {
            stop_reason: Some(StopReason::Id(2)),
            ..finish(FinishReason::Stop)
        });
        let choice = text(to_json(&CompletionChoice::new(3, &piece, NONE)));
        assert!(choice.ends_with(r#""finish_reason":"stop","stop_reason":2}"#));
        piece.finish = Some(Finish {
            stop_reason: Some(StopReason::Text("x\"".into())),
            tool_call: Some(grammar::ToolCall {
                name: "f".into(),
                arguments: r#"{"a":1}"#.into(),
            }),
            ..finish(FinishReason::Stop)
        });
        let choice = text(to_json(&CompletionChoice::new(3, &piece, NONE)));
        let (before, call) = choice.split_once(r#","tool_calls":[{"id":"call_"#).unwrap();
        assert!(before.ends_with(r#""stop_reason":"x\"""#));
        let (id, function) = call.split_once('"').unwrap();
        assert!(id.len() >= 16 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(
            function,
            r#","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#
        );
    }

    #[test]
    fn usage_is_absent_null_or_present_and_the_schema_comes_first() {
        let absent = text(completion(&head(None), &[], None, None));
        assert!(!absent.contains("usage"));
        let null = text(completion(&head(None), &[], Some(None), None));
        assert!(null.ends_with(r#""choices":[],"usage":null}"#));
        let schema = text(completion(
            &head(Some("https://s.example")),
            &[],
            None,
            None,
        ));
        assert!(schema.starts_with(r#"{"$schema":"https://s.example","id""#));
    }
}
