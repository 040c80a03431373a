//! Presets of switches for the vendors whose behavior they imitate (specification 14), and the JSON
//! that overrides them.

use serde_json::{Map, Value};

use super::values::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MessageWord, MirostatTargetUnit, SamplingBounds, SpeculationMode, SuffixMode,
    Switches, TextOffsetBase, ToolNames, UnknownFields, UsagePlace, UseModelDefaults,
    WhenModelNotReady,
};
use crate::engine::generation::LogprobsMode;
use crate::{Error, Result};

/// One column of the table in specification 14: what differs between vendors.
struct Profile {
    /// The values of `profile` that choose it.
    names: &'static [&'static str],
    stop_text_included: bool,
    context_length_exceeded: ContextLengthExceededBehavior,
    default_max_tokens: DefaultMaxTokens,
    suffix_mode: SuffixMode,
    unknown_fields: UnknownFields,
    always_include_usage: AlwaysIncludeUsage,
    logprobs_mode: LogprobsMode,
    text_offset_base: TextOffsetBase,
    max_logprobs: u32,
    max_stop_sequences: usize,
    use_model_generation_defaults: UseModelDefaults,
    default_max_message_tokens: DefaultMaxTokens,
    allow_missing_model: bool,
    schema_url: Option<&'static str>,
    base_paths: &'static [&'static str],
    max_best_of: u32,
    logprobs_shape: LogprobsShape,
    boolean_logprobs: bool,
    sampling_bounds: SamplingBounds,
    tool_names: ToolNames,
    mixed_prompts: bool,
    invalid_request_status: u16,
    assistant_prefill: bool,
    timings: bool,
}

const WHOLE_CONTEXT: DefaultMaxTokens = DefaultMaxTokens::Context(ContextWord::Context);

const DEFAULT: Profile = Profile {
    names: &["default"],
    stop_text_included: false,
    context_length_exceeded: ContextLengthExceededBehavior::Truncate,
    default_max_tokens: DefaultMaxTokens::Tokens(16),
    suffix_mode: SuffixMode::Append,
    unknown_fields: UnknownFields::Ignore,
    always_include_usage: AlwaysIncludeUsage::Always(false),
    logprobs_mode: LogprobsMode::Raw,
    text_offset_base: TextOffsetBase::Text,
    max_logprobs: 5,
    max_stop_sequences: 4,
    use_model_generation_defaults: UseModelDefaults::In(MessageWord::Messages),
    default_max_message_tokens: DefaultMaxTokens::Tokens(2048),
    allow_missing_model: false,
    schema_url: None,
    base_paths: &["/v1", "/openai/v1"],
    max_best_of: 20,
    logprobs_shape: LogprobsShape::Arrays,
    boolean_logprobs: false,
    sampling_bounds: SamplingBounds::Standard,
    tool_names: ToolNames::Standard,
    mixed_prompts: false,
    invalid_request_status: 400,
    assistant_prefill: true,
    timings: false,
};

const PROFILES: &[Profile] = &[
    DEFAULT,
    Profile {
        names: &["openai", "openai-strict"],
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Fim,
        unknown_fields: UnknownFields::Error,
        text_offset_base: TextOffsetBase::Prompt,
        default_max_message_tokens: WHOLE_CONTEXT,
        assistant_prefill: false,
        ..DEFAULT
    },
    Profile {
        names: &["jiekou", "tokensmind"],
        stop_text_included: true,
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Reject,
        assistant_prefill: false,
        ..DEFAULT
    },
    Profile {
        names: &["fireworks"],
        stop_text_included: true,
        suffix_mode: SuffixMode::Reject,
        unknown_fields: UnknownFields::Error,
        always_include_usage: AlwaysIncludeUsage::In(UsagePlace::LastChoice),
        base_paths: &["/v1", "/openai/v1", "/inference/v1"],
        boolean_logprobs: true,
        ..DEFAULT
    },
    Profile {
        names: &["vllm"],
        context_length_exceeded: ContextLengthExceededBehavior::Error,
        suffix_mode: SuffixMode::Reject,
        max_logprobs: 20,
        max_stop_sequences: 64,
        use_model_generation_defaults: UseModelDefaults::Everywhere(true),
        default_max_message_tokens: WHOLE_CONTEXT,
        assistant_prefill: false,
        // The vendor's own URL is not documented; nothing is ever fetched from this one.
        schema_url: Some("https://inpage.invalid/schemas/completion.json"),
        ..DEFAULT
    },
    Profile {
        names: &["mistralrs", "mistral.rs"],
        default_max_tokens: WHOLE_CONTEXT,
        logprobs_mode: LogprobsMode::Processed,
        max_logprobs: 20,
        max_stop_sequences: 64,
        use_model_generation_defaults: UseModelDefaults::Everywhere(true),
        default_max_message_tokens: WHOLE_CONTEXT,
        allow_missing_model: true,
        max_best_of: 128,
        logprobs_shape: LogprobsShape::Content,
        sampling_bounds: SamplingBounds::Open,
        tool_names: ToolNames::Any,
        invalid_request_status: 422,
        assistant_prefill: false,
        ..DEFAULT
    },
    Profile {
        names: &["llamacpp", "llama.cpp"],
        default_max_tokens: WHOLE_CONTEXT,
        suffix_mode: SuffixMode::Reject,
        allow_missing_model: true,
        mixed_prompts: true,
        use_model_generation_defaults: UseModelDefaults::Everywhere(true),
        default_max_message_tokens: WHOLE_CONTEXT,
        timings: true,
        ..DEFAULT
    },
];

/// The TypeScript type of what [`Switches::from_json`] reads.
#[cfg(test)]
pub(in crate::api) struct EngineSwitches;

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

/// The values of `profile`, in words.
#[cfg(test)]
pub(super) fn profile_words() -> String {
    let words = PROFILES.iter().map(|profile| {
        let names = profile.names.iter().map(|name| format!("`\"{name}\"`"));
        names.collect::<Vec<_>>().join(" or ")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The switches, and what the page knows of each profile before there is an engine.
#[cfg(test)]
pub(in crate::api) fn constants() -> [crate::typescript::Constant; 2] {
    use crate::typescript::Constant;
    let profiles = PROFILES.iter().flat_map(|profile| {
        let known = serde_json::json!({
            "basePaths": profile.base_paths,
            "allowMissingModel": profile.allow_missing_model,
        });
        profile
            .names
            .iter()
            .map(move |name| ((*name).to_owned(), known.clone()))
    });
    let profiles = Constant {
        docs: "What the profiles set that the page reads itself.",
        name: "PROFILES",
        declared_type: "Readonly<Record<NonNullable<EngineSwitches[\"profile\"]>, Readonly<Pick<Switches, \"basePaths\" | \"allowMissingModel\">>>>",
        value: Value::Object(profiles.collect()),
    };
    let switches = Constant::names::<Switches>(
        "The names of the switches.",
        "SWITCHES",
        "Readonly<Record<keyof EngineSwitches, true>>",
        &["profile"],
    );
    [switches, profiles]
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
            max_best_of: self.max_best_of,
            max_prompts: 128,
            max_sequences: 128,
            use_model_generation_defaults: self.use_model_generation_defaults,
            default_max_message_tokens: self.default_max_message_tokens,
            allow_missing_model: self.allow_missing_model,
            when_model_not_ready: WhenModelNotReady::Error,
            api_key: None,
            cors: Cors {
                allow_origin: "*".to_owned(),
            },
            base_paths: self
                .base_paths
                .iter()
                .map(|path| (*path).to_owned())
                .collect(),
            max_body_bytes: 33_554_432,
            remote_images: false,
            max_queue: 16,
            keep_alive_ms: 10_000,
            schema_url: self.schema_url.map(str::to_owned),
            logprobs_shape: self.logprobs_shape,
            boolean_logprobs: self.boolean_logprobs,
            sampling_bounds: self.sampling_bounds,
            tool_names: self.tool_names,
            open_objects: false,
            mixed_prompts: self.mixed_prompts,
            invalid_request_status: self.invalid_request_status,
            request_timeout_ms: None,
            chat_template: None,
            assistant_prefill: self.assistant_prefill,
            timings: self.timings,
            prepare_next_turn: true,
            speculation: SpeculationMode::Auto,
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
    /// [`Error::Internal`] naming the switch that is unknown or has an invalid value. Only the page's
    /// configuration can cause it, never a request.
    pub fn from_json(json: &str) -> Result<Switches> {
        let given = serde_json::from_str(json);
        Switches::from_value(given.map_err(|error| wrong(error.to_string()))?)
    }

    /// Same as [`from_json`](Self::from_json), from a JSON value.
    ///
    /// # Errors
    /// Same as [`from_json`](Self::from_json).
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
        if ![400, 422].contains(&switches.invalid_request_status) {
            let status = switches.invalid_request_status;
            return Err(wrong(format!(
                "invalidRequestStatus must be 400 or 422, not {status}"
            )));
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

/// Whether `url` begins with a scheme (RFC 3986) and continues after it.
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
        let never = AlwaysIncludeUsage::Always(false);
        assert_eq!(switches.always_include_usage, never);
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
                "false truncate 16 append ignore false raw text 5/4 messages false",
            ),
            (
                "openai",
                "false error 16 fim error false raw prompt 5/4 messages false",
            ),
            (
                "jiekou",
                "true error 16 reject ignore false raw text 5/4 messages false",
            ),
            (
                "fireworks",
                "true truncate 16 reject error last_choice raw text 5/4 messages false",
            ),
            (
                "vllm",
                "false error 16 reject ignore false raw text 20/64 true false",
            ),
            (
                "mistralrs",
                "false truncate context append ignore false processed text 20/64 true true",
            ),
            (
                "llamacpp",
                "false truncate context reject ignore false raw text 5/4 true true",
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
            let vendor_only = [
                ("mistralrs", "maxBestOf", "20", "128"),
                ("mistralrs", "logprobsShape", "arrays", "content"),
                ("mistralrs", "samplingBounds", "standard", "open"),
                ("mistralrs", "toolNames", "standard", "any"),
                ("mistralrs", "invalidRequestStatus", "400", "422"),
                ("fireworks", "booleanLogprobs", "false", "true"),
                ("llamacpp", "mixedPrompts", "false", "true"),
                ("llamacpp", "timings", "false", "true"),
                (
                    "fireworks",
                    "basePaths",
                    r#"["/v1","/openai/v1"]"#,
                    r#"["/v1","/openai/v1","/inference/v1"]"#,
                ),
            ];
            for (vendor, key, others, own) in vendor_only {
                let expected = if name == vendor { own } else { others };
                assert_eq!(word(key), expected, "{name}: {key}");
            }
            let as_openai = ["openai", "jiekou", "vllm", "mistralrs"].contains(&name);
            let is_whole = ["openai", "vllm", "mistralrs", "llamacpp"].contains(&name);
            let most = if is_whole { "context" } else { "2048" };
            assert_eq!(word("defaultMaxMessageTokens"), most, "{name}");
            assert_eq!(word("assistantPrefill"), (!as_openai).to_string(), "{name}");
            // The rows that do not differ.
            for (key, value) in [
                ("mirostatTargetUnit", "perplexity"),
                ("maxN", "128"),
                ("maxPrompts", "128"),
                ("maxSequences", "128"),
                ("whenModelNotReady", "error"),
                ("apiKey", "null"),
                ("cors", r#"{"allowOrigin":"*"}"#),
                ("maxBodyBytes", "33554432"),
                ("maxQueue", "16"),
                ("keepAliveMs", "10000"),
                ("requestTimeoutMs", "null"),
                ("chatTemplate", "null"),
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
            (r#"{"alwaysIncludeUsage":"first"}"#, "AlwaysIncludeUsage"),
            (r#"{"invalidRequestStatus":500}"#, "invalidRequestStatus"),
            (r#"{"samplingBounds":"none"}"#, "none"),
            ("[]", "invalid switches"),
        ] {
            let error = Switches::from_json(json).unwrap_err().to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
