//! The engine's switches and their presets (specification 14). Knows no request.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::engine::generation::LogprobsMode;
use crate::{Error, Result};

/// How the endpoint behaves where vendors differ. The JSON form has camelCase names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Switches {
    /// Whether a matched stop string is returned when the request does not say.
    pub stop_text_included: bool,
    /// What happens when prompt and `max_tokens` exceed the context and the request does not say.
    pub context_length_exceeded_behavior: ContextLengthExceededBehavior,
    /// `max_tokens` of a request without it.
    pub default_max_tokens: DefaultMaxTokens,
    /// What `suffix` means when the request does not say.
    pub suffix_mode: SuffixMode,
    /// What happens to fields nobody knows.
    pub unknown_fields: UnknownFields,
    /// As if every streaming request set `stream_options.include_usage`.
    pub always_include_usage: bool,
    /// Unit of `mirostat_target`.
    pub mirostat_target_unit: MirostatTargetUnit,
    /// Which distribution log-probabilities describe when the request does not say.
    #[serde(with = "LogprobsModeName")]
    #[cfg_attr(test, ts(type = "\"raw\" | \"processed\""))]
    pub logprobs_mode: LogprobsMode,
    /// What `text_offset` counts from when the prompt is not echoed.
    pub text_offset_base: TextOffsetBase,
    /// Largest `logprobs`.
    pub max_logprobs: u32,
    /// Most stop strings.
    pub max_stop_sequences: usize,
    /// Largest `n`.
    pub max_n: u32,
    /// Largest `best_of`.
    pub max_best_of: u32,
    /// Most prompts in one request.
    pub max_prompts: usize,
    /// Most candidates of one request over all its prompts.
    pub max_sequences: usize,
    /// Whether the model's own sampling defaults fill what the request leaves out.
    pub use_model_generation_defaults: bool,
    /// Whether a request without `model` means `"default"`.
    pub allow_missing_model: bool,
    /// What a request gets while its model loads.
    pub when_model_not_ready: WhenModelNotReady,
    /// If set, every route but `OPTIONS` demands `Bearer <key>`.
    pub api_key: Option<String>,
    /// Cross-origin access.
    pub cors: Cors,
    /// Where the routes hang.
    pub base_paths: Vec<String>,
    /// Largest request body.
    pub max_body_bytes: usize,
    /// Most waiting requests; the engine enforces it.
    pub max_queue: usize,
    /// Silence on a stream after which a comment is sent; 0 sends none.
    pub keep_alive_ms: u32,
    /// If set, responses open with `"$schema"`; an absolute URL.
    pub schema_url: Option<String>,
    /// Longest time a request may take to answer; none by default.
    pub request_timeout_ms: Option<u32>,
    /// What the alias `default` means when several models are ready.
    pub default_model: Option<String>,
}

/// `contextLengthExceededBehavior`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ContextLengthExceededBehavior {
    /// Generate what fits.
    Truncate,
    /// Refuse the request.
    Error,
}

/// `defaultMaxTokens`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum DefaultMaxTokens {
    /// So many.
    Tokens(usize),
    /// The string `"context"`.
    Context(ContextWord),
}

/// The word `"context"`: until the context is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum ContextWord {
    /// Until the context is full.
    Context,
}

/// `suffixMode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum SuffixMode {
    /// It follows the text of every choice.
    Append,
    /// The model fills in what goes between the prompt and it.
    Fim,
    /// Refuse the request.
    Reject,
}

/// The words of `logprobsMode`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LogprobsMode", rename_all = "lowercase")]
enum LogprobsModeName {
    Raw,
    Processed,
}

/// `textOffsetBase`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum TextOffsetBase {
    /// The start of the choice's text.
    Text,
    /// The start of the prompt, be it echoed or not.
    Prompt,
}

/// `unknownFields`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum UnknownFields {
    /// Warn once per name, go on.
    Ignore,
    /// Refuse the request.
    Error,
}

/// `mirostatTargetUnit`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum MirostatTargetUnit {
    /// The target is a perplexity, at least 1.
    Perplexity,
    /// The target is a surprise in bits, above 0.
    Bits,
}

/// `whenModelNotReady`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum WhenModelNotReady {
    /// 503 at once.
    Error,
    /// While the model loads the request waits.
    Wait,
}

/// `cors`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cors {
    /// `Access-Control-Allow-Origin`.
    pub allow_origin: String,
}

/// One column of the table in specification 14: what differs between vendors.
struct Profile {
    /// The values of `profile` that choose it.
    names: &'static [&'static str],
    stop_text_included: bool,
    context_length_exceeded: ContextLengthExceededBehavior,
    default_max_tokens: DefaultMaxTokens,
    suffix_mode: SuffixMode,
    unknown_fields: UnknownFields,
    always_include_usage: bool,
    logprobs_mode: LogprobsMode,
    text_offset_base: TextOffsetBase,
    max_logprobs: u32,
    max_stop_sequences: usize,
    use_model_generation_defaults: bool,
    allow_missing_model: bool,
    schema_url: Option<&'static str>,
}

const DEFAULT: Profile = Profile {
    names: &["default"],
    stop_text_included: false,
    context_length_exceeded: ContextLengthExceededBehavior::Truncate,
    default_max_tokens: DefaultMaxTokens::Tokens(16),
    suffix_mode: SuffixMode::Append,
    unknown_fields: UnknownFields::Ignore,
    always_include_usage: false,
    logprobs_mode: LogprobsMode::Raw,
    text_offset_base: TextOffsetBase::Text,
    max_logprobs: 5,
    max_stop_sequences: 4,
    use_model_generation_defaults: false,
    allow_missing_model: false,
    schema_url: None,
};

const PROFILES: &[Profile] = &[
    DEFAULT,
    Profile {
        names: &["openai", "openai-strict"],
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Fim,
        unknown_fields: UnknownFields::Error,
        text_offset_base: TextOffsetBase::Prompt,
        ..DEFAULT
    },
    Profile {
        names: &["jiekou", "tokensmind"],
        stop_text_included: true,
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Reject,
        ..DEFAULT
    },
    Profile {
        names: &["fireworks"],
        stop_text_included: true,
        suffix_mode: SuffixMode::Reject,
        unknown_fields: UnknownFields::Error,
        always_include_usage: true,
        ..DEFAULT
    },
    Profile {
        names: &["vllm"],
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Reject,
        max_logprobs: 20,
        max_stop_sequences: 64,
        use_model_generation_defaults: true,
        // The vendor's own is unknown to us; nothing is ever fetched from this one.
        schema_url: Some("https://inpage.invalid/schemas/completion.json"),
        ..DEFAULT
    },
    Profile {
        names: &["mistralrs", "mistral.rs"],
        default_max_tokens: DefaultMaxTokens::Context(ContextWord::Context),
        logprobs_mode: LogprobsMode::Processed,
        max_logprobs: 20,
        max_stop_sequences: 64,
        use_model_generation_defaults: true,
        allow_missing_model: true,
        ..DEFAULT
    },
];

/// The TypeScript type of what [`Switches::from_json`] reads.
#[cfg(test)]
pub(super) struct EngineSwitches;

#[cfg(test)]
impl ts_rs::TS for EngineSwitches {
    type WithoutGenerics = EngineSwitches;
    type OptionInnerType = EngineSwitches;

    fn docs() -> Option<String> {
        let docs = "/** Switches of an engine. A `profile` sets several; single switches override it. */\n";
        Some(docs.to_owned())
    }

    fn name(_: &ts_rs::Config) -> String {
        "EngineSwitches".to_owned()
    }

    fn inline(_: &ts_rs::Config) -> String {
        let names = PROFILES.iter().flat_map(|profile| profile.names);
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        format!("Partial<Switches> & {{ profile?: {} }}", names.join(" | "))
    }

    fn decl(config: &ts_rs::Config) -> String {
        format!("type EngineSwitches = {};", Self::inline(config))
    }

    fn visit_dependencies(visitor: &mut impl ts_rs::TypeVisitor) {
        visitor.visit::<Switches>();
    }

    fn output_path() -> Option<std::path::PathBuf> {
        Some("types.ts".into())
    }
}

impl Profile {
    fn switches(&self) -> Switches {
        Switches {
            stop_text_included: self.stop_text_included,
            context_length_exceeded_behavior: self.context_length_exceeded,
            default_max_tokens: self.default_max_tokens,
            suffix_mode: self.suffix_mode,
            unknown_fields: self.unknown_fields,
            always_include_usage: self.always_include_usage,
            mirostat_target_unit: MirostatTargetUnit::Perplexity,
            logprobs_mode: self.logprobs_mode,
            text_offset_base: self.text_offset_base,
            max_logprobs: self.max_logprobs,
            max_stop_sequences: self.max_stop_sequences,
            max_n: 128,
            max_best_of: 20,
            max_prompts: 128,
            max_sequences: 128,
            use_model_generation_defaults: self.use_model_generation_defaults,
            allow_missing_model: self.allow_missing_model,
            when_model_not_ready: WhenModelNotReady::Error,
            api_key: None,
            cors: Cors {
                allow_origin: "*".to_owned(),
            },
            base_paths: vec!["/v1".to_owned(), "/openai/v1".to_owned()],
            max_body_bytes: 33_554_432,
            max_queue: 16,
            keep_alive_ms: 10_000,
            schema_url: self.schema_url.map(str::to_owned),
            request_timeout_ms: None,
            default_model: None,
        }
    }
}

impl Default for Switches {
    fn default() -> Switches {
        DEFAULT.switches()
    }
}

impl Switches {
    /// The preset called `name` (`"fireworks"`, `"vllm"`, ...), if there is one.
    pub fn profile(name: &str) -> Option<Switches> {
        PROFILES
            .iter()
            .find(|profile| profile.names.contains(&name))
            .map(Profile::switches)
    }

    /// Reads a JSON object of switches; its member `profile` names the preset that the other
    /// members override.
    ///
    /// # Errors
    /// [`Error::Internal`] naming the switch that is unknown or has a wrong value. It is a fault
    /// of the page's set-up, no request can cause it.
    pub fn from_json(json: &str) -> Result<Switches> {
        let given = serde_json::from_str(json);
        Switches::from_value(given.map_err(|error| wrong(error.to_string()))?)
    }

    /// As [`from_json`](Self::from_json), from a JSON value.
    ///
    /// # Errors
    /// The same.
    pub fn from_value(given: Value) -> Result<Switches> {
        let given = serde_json::from_value::<Map<String, Value>>(given);
        let mut given = given.map_err(|error| wrong(error.to_string()))?;
        let preset = match given.remove("profile") {
            None | Some(Value::Null) => Switches::default(),
            Some(Value::String(name)) => {
                Switches::profile(&name).ok_or_else(|| wrong(format!("no profile \"{name}\"")))?
            }
            Some(other) => return Err(wrong(format!("profile must be a string, not {other}"))),
        };
        let Ok(Value::Object(mut merged)) = serde_json::to_value(preset) else {
            return Err(wrong("the preset has no JSON form".to_owned()));
        };
        merged.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
        let switches: Switches = serde_json::from_value(Value::Object(merged))
            .map_err(|error| wrong(error.to_string()))?;
        if switches.api_key.as_deref() == Some("") {
            return Err(wrong("apiKey must not be empty".to_owned()));
        }
        if let Some(url) = switches
            .schema_url
            .as_deref()
            .filter(|url| !is_absolute(url))
        {
            return Err(wrong(format!(
                "schemaUrl must be an absolute URL, not {url}"
            )));
        }
        Ok(switches)
    }
}

fn wrong(reason: String) -> Error {
    Error::Internal(format!("invalid switches: {reason}"))
}

/// Whether `url` begins with a scheme (RFC 3986) and goes on after it.
fn is_absolute(url: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    url.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(is_legal)
            && !rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_default_column() {
        assert_eq!(Switches::from_json("{}").unwrap(), Switches::default());
        let switches = Switches::default();
        assert_eq!(switches.default_max_tokens, DefaultMaxTokens::Tokens(16));
        assert_eq!(switches.max_body_bytes, 32 * 1024 * 1024);
    }

    #[test]
    fn single_switches_override_the_profile() {
        let switches = Switches::from_json(
            r#"{"profile":"fireworks","alwaysIncludeUsage":false,"cors":{"allowOrigin":"x"},
                "defaultMaxTokens":"context","basePaths":["/api"],"apiKey":null,
                "suffixMode":"fim","logprobsMode":"processed","textOffsetBase":"prompt",
                "schemaUrl":"https://a.example/x"}"#,
        )
        .unwrap();
        assert_eq!(switches.suffix_mode, SuffixMode::Fim);
        assert_eq!(switches.logprobs_mode, LogprobsMode::Processed);
        assert_eq!(switches.text_offset_base, TextOffsetBase::Prompt);
        assert_eq!(switches.schema_url.as_deref(), Some("https://a.example/x"));
        assert!(switches.stop_text_included);
        assert!(!switches.always_include_usage);
        assert_eq!(switches.unknown_fields, UnknownFields::Error);
        assert_eq!(
            switches.default_max_tokens,
            DefaultMaxTokens::Context(ContextWord::Context)
        );
        assert_eq!(switches.base_paths, ["/api"]);
        assert_eq!(switches.cors.allow_origin, "x");
    }

    #[test]
    fn every_profile_is_found_by_each_name() {
        for profile in PROFILES {
            for name in profile.names {
                assert_eq!(Switches::profile(name), Some(profile.switches()));
            }
        }
        assert!(Switches::profile("mistralrs").unwrap().allow_missing_model);
        assert_eq!(Switches::profile("vllm").unwrap().max_stop_sequences, 64);
    }

    /// The table of specification 14, row by row.
    #[test]
    fn the_columns_are_those_of_the_table() {
        let expected = [
            // stop, exceeded, max_tokens, suffix, unknown, usage, logprobs, offset, 5/4, gen, model
            (
                "default",
                "false truncate 16 append ignore false raw text 5/4 false false",
            ),
            (
                "openai",
                "false error 16 fim error false raw prompt 5/4 false false",
            ),
            (
                "jiekou",
                "true error 16 reject ignore false raw text 5/4 false false",
            ),
            (
                "fireworks",
                "true truncate 16 reject error true raw text 5/4 false false",
            ),
            (
                "vllm",
                "false error 16 reject ignore false raw text 20/64 true false",
            ),
            (
                "mistralrs",
                "false truncate context append ignore false processed text 20/64 true true",
            ),
        ];
        for (name, expected) in expected {
            let switches = Switches::profile(name).unwrap();
            assert_eq!(switches.schema_url.is_some(), name == "vllm");
            let json = serde_json::to_value(&switches).unwrap();
            let word = |key: &str| match &json[key] {
                Value::String(word) => word.clone(),
                other => other.to_string(),
            };
            let row = [
                word("stopTextIncluded"),
                word("contextLengthExceededBehavior"),
                word("defaultMaxTokens"),
                word("suffixMode"),
                word("unknownFields"),
                word("alwaysIncludeUsage"),
                word("logprobsMode"),
                word("textOffsetBase"),
                format!("{}/{}", word("maxLogprobs"), word("maxStopSequences")),
                word("useModelGenerationDefaults"),
                word("allowMissingModel"),
            ];
            assert_eq!(row.join(" "), expected, "{name}");
            // The rows that do not differ.
            for (key, value) in [
                ("mirostatTargetUnit", "perplexity"),
                ("maxN", "128"),
                ("maxBestOf", "20"),
                ("maxPrompts", "128"),
                ("maxSequences", "128"),
                ("whenModelNotReady", "error"),
                ("apiKey", "null"),
                ("cors", r#"{"allowOrigin":"*"}"#),
                ("basePaths", r#"["/v1","/openai/v1"]"#),
                ("maxBodyBytes", "33554432"),
                ("maxQueue", "16"),
                ("keepAliveMs", "10000"),
                ("requestTimeoutMs", "null"),
            ] {
                assert_eq!(word(key), value, "{name}: {key}");
            }
        }
    }

    #[test]
    fn wrong_switches_are_named() {
        for (json, named) in [
            (r#"{"stopText":true}"#, "stopText"),
            (r#"{"profile":"acme"}"#, "acme"),
            (r#"{"profile":1}"#, "profile"),
            (r#"{"unknownFields":"warn"}"#, "warn"),
            (r#"{"apiKey":""}"#, "apiKey"),
            (r#"{"schemaUrl":"/completion.json"}"#, "schemaUrl"),
            (r#"{"suffixMode":"prepend"}"#, "prepend"),
            (r#"{"logprobsMode":"cooked"}"#, "cooked"),
            (r#"{"textOffsetBase":"start"}"#, "start"),
            ("[]", "invalid switches"),
        ] {
            let error = Switches::from_json(json).unwrap_err().to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
