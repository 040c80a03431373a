//! The switches of the endpoint (specification 14).

use serde::{Deserialize, Serialize};

use crate::engine::generation::LogprobsMode;

/// The behavior of the endpoint where vendors differ. The JSON form has camelCase names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Switches {
    /// Default of `include_stop_str_in_output`: whether a matched stop string is returned.
    pub stop_text_included: bool,
    /// Default of `context_length_exceeded_behavior`: `"truncate"` generates what fits, `"error"` refuses the request.
    pub context_length_exceeded_behavior: ContextLengthExceededBehavior,
    /// Default of `max_tokens`; `"context"` generates until the context is full.
    pub default_max_tokens: DefaultMaxTokens,
    /// The maximum number of tokens of a message without `max_tokens`, as far as they fit the context; `"context"`: all that fit.
    pub default_max_message_tokens: DefaultMaxTokens,
    /// Default of `suffix_mode`: `"append"`, `"fim"` or `"reject"`.
    pub suffix_mode: SuffixMode,
    /// The treatment of unknown fields: `"ignore"` warns once per name, `"error"` refuses the request.
    pub unknown_fields: UnknownFields,
    /// Token counts in streams that do not ask for them. True: as if every stream set `include_usage`; `"last_choice"`: in
    /// the last chunk that has a choice, without an extra chunk.
    pub always_include_usage: AlwaysIncludeUsage,
    /// Unit of `mirostat_target`: `"perplexity"` or `"bits"`.
    pub mirostat_target_unit: MirostatTargetUnit,
    /// Default of `logprobs_mode`: the distribution that log-probabilities describe, `"raw"` or `"processed"`.
    #[serde(with = "LogprobsModeName")]
    #[cfg_attr(test, ts(type = "\"raw\" | \"processed\""))]
    pub logprobs_mode: LogprobsMode,
    /// The place that `text_offset` counts from when the prompt is not echoed: `"text"`, the start of the text, or `"prompt"`, the
    /// start of the prompt.
    pub text_offset_base: TextOffsetBase,
    /// Largest `logprobs`.
    pub max_logprobs: u32,
    /// The maximum number of stop strings.
    pub max_stop_sequences: usize,
    /// Largest `n`.
    pub max_n: u32,
    /// Largest `best_of`.
    pub max_best_of: u32,
    /// The maximum number of prompts in one request.
    pub max_prompts: usize,
    /// The maximum number of candidates of one request over all its prompts.
    pub max_sequences: usize,
    /// The routes where the sampling values and the limit of tokens that the model's files recommend fill what the request leaves out:
    /// `"messages"`: in chat and responses; true: everywhere; false: nowhere.
    pub use_model_generation_defaults: UseModelDefaults,
    /// Whether a request without `model` means `"default"`.
    pub allow_missing_model: bool,
    /// The treatment of a request while its model loads: `"wait"` holds it, `"error"` refuses it with 503. `createEngine`
    /// sets `"wait"`, unless there is an `upstream`.
    pub when_model_not_ready: WhenModelNotReady,
    /// If set, every request except `OPTIONS` requires `Authorization: Bearer <key>` or `X-Api-Key: <key>`.
    pub api_key: Option<String>,
    /// Cross-origin access: the value of `Access-Control-Allow-Origin`.
    pub cors: Cors,
    /// The paths below which the routes are.
    pub base_paths: Vec<String>,
    /// Largest request body in bytes.
    pub max_body_bytes: usize,
    /// Whether images may be at `http:` and `https:` URLs, which a web page fetches under its own rules.
    pub remote_images: bool,
    /// The maximum number of waiting requests; more are refused with 429.
    pub max_queue: usize,
    /// Silence on a stream in milliseconds after which a comment is sent; 0 sends none.
    pub keep_alive_ms: u32,
    /// If set, answers begin with `"$schema"`; an absolute URL.
    pub schema_url: Option<String>,
    /// The form of `logprobs` in answers: `"arrays"`, or `"content"` as chat completions have it.
    pub logprobs_shape: LogprobsShape,
    /// Whether `logprobs` may be a boolean without `top_logprobs`.
    pub boolean_logprobs: bool,
    /// The bounds of `temperature`, penalties and biases: `"standard"`, or `"open"` without upper bounds.
    pub sampling_bounds: SamplingBounds,
    /// The names that tools may have: `"standard"` (1 to 64 of `A-Z a-z 0-9 _ -`), or `"any"` that is not empty.
    pub tool_names: ToolNames,
    /// Whether an object of a JSON schema without `additionalProperties` may have members that the schema does not name,
    /// and a tuple further items.
    pub open_objects: bool,
    /// Whether an array of `prompt` may hold strings and token ids, as llama.cpp takes it.
    pub mixed_prompts: bool,
    /// Status of requests that are JSON, but not valid: 400 or 422.
    #[cfg_attr(test, ts(type = "400 | 422"))]
    pub invalid_request_status: u16,
    /// Longest time a request may take to answer, in milliseconds.
    pub request_timeout_ms: Option<u32>,
    /// The text of a chat template (Jinja) instead of those of the model's files.
    pub chat_template: Option<String>,
    /// A conversation that ends with a message of the assistant is continued within it, unless the request says otherwise.
    pub assistant_prefill: bool,
    /// Whether answers have llama.cpp's `timings`.
    pub timings: bool,
    /// Whether the engine feeds the conversation after a chat message while it is idle, so that its next turn begins sooner.
    pub prepare_next_turn: bool,
    /// Tokens that are guessed and verified several at once, which changes how fast they come and not which: `"off"`: none;
    /// `"predictions"`: those of requests with a `prediction`, and those that a constraint forces; `"all"`: also those that
    /// follow where the end of the text occurred before, and those of a draft model or of the model's own head; `"auto"`:
    /// `"all"`, on a GPU without those that follow elsewhere in the text.
    pub speculation: SpeculationMode,
    /// The model that `"default"` means when several models are ready.
    pub default_model: Option<String>,
}

/// The treatment of a prompt and `max_tokens` that exceed the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ContextLengthExceededBehavior {
    /// Generate what fits.
    Truncate,
    /// Reject the request.
    Error,
}

/// `max_tokens` of a request without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum DefaultMaxTokens {
    /// This number.
    Tokens(usize),
    /// The string `"context"`.
    Context(ContextWord),
}

/// The word `"context"`: until the context is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ContextWord {
    /// Generate until the context is full.
    Context,
}

/// Token counts in streams that do not ask for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum AlwaysIncludeUsage {
    /// True: as if every streaming request set `stream_options.include_usage`.
    Always(bool),
    /// The counts are in the named chunk, which exists anyway.
    In(UsagePlace),
}

/// The routes where values that the model's files recommend fill what the request leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum UseModelDefaults {
    /// True: on every route. False: on none.
    Everywhere(bool),
    /// The recommended values are used on the named routes only.
    In(MessageWord),
}

impl UseModelDefaults {
    /// Whether they hold for a completion that is a message, or text.
    pub fn hold(self, is_message: bool) -> bool {
        match self {
            UseModelDefaults::Everywhere(hold) => hold,
            UseModelDefaults::In(MessageWord::Messages) => is_message,
        }
    }
}

/// The word `"messages"`: routes that answer with messages of the assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum MessageWord {
    /// Chat and responses.
    Messages,
}

/// The chunk with the token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum UsagePlace {
    /// The last chunk with a choice; there is no extra chunk.
    LastChoice,
}

/// The form of `logprobs` in answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum LogprobsShape {
    /// Four arrays with an entry per token.
    Arrays,
    /// A list `content` with an object per token, as chat completions have it.
    Content,
}

/// The bounds of `temperature`, penalties and biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SamplingBounds {
    /// The ranges of `docs/api.md`.
    Standard,
    /// Any number of the right sign.
    Open,
}

/// The names that tools may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ToolNames {
    /// 1 to 64 of `[A-Za-z0-9_-]`.
    Standard,
    /// Any string that is not empty.
    Any,
}

/// The meaning of `suffix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SuffixMode {
    /// The suffix follows the text of every choice.
    Append,
    /// The model fills in what goes between the prompt and it.
    Fim,
    /// Reject the request.
    Reject,
}

/// The words of `logprobsMode`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LogprobsMode", rename_all = "lowercase")]
enum LogprobsModeName {
    Raw,
    Processed,
}

/// The start of `text_offset` when the prompt is not echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TextOffsetBase {
    /// The start of the choice's text.
    Text,
    /// The start of the prompt, whether it is echoed or not.
    Prompt,
}

/// The treatment of unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum UnknownFields {
    /// Warn once per name and continue.
    Ignore,
    /// Reject the request.
    Error,
}

/// The unit of `mirostat_target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum MirostatTargetUnit {
    /// The target is a perplexity, at least 1.
    Perplexity,
    /// The target is a surprise in bits, above 0.
    Bits,
}

/// The treatment of a request while its model loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum WhenModelNotReady {
    /// 503 at once.
    Error,
    /// While the model loads the request waits.
    Wait,
}

/// The tokens that are guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SpeculationMode {
    /// `All`, on a GPU without the tokens that followed elsewhere in the text.
    Auto,
    /// No tokens are guessed.
    Off,
    /// The tokens that come next in a request's prediction, and those that a constraint forces.
    Predictions,
    /// Also the tokens that followed where the end of the text occurred before, and those of a draft model or a head.
    All,
}

/// Cross-origin access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cors {
    /// `Access-Control-Allow-Origin`.
    pub allow_origin: String,
}
