//! Presets of switches for the vendors whose behavior they imitate (specification 14).

use super::values::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MessageWord, MirostatTargetUnit, SamplingBounds, SpeculationMode, SuffixMode,
    Switches, TextOffsetBase, ToolNames, UnknownFields, UsagePlace, UseModelDefaults,
    WhenModelNotReady,
};
use crate::engine::generation::LogprobsMode;

/// One column of the table in specification 14: what differs between vendors.
pub(super) struct Profile {
    /// The values of `profile` that choose it.
    pub(super) names: &'static [&'static str],
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
    pub(super) allow_missing_model: bool,
    schema_url: Option<&'static str>,
    pub(super) base_paths: &'static [&'static str],
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

pub(super) const PROFILES: &[Profile] = &[
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
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn defaults_are_the_default_column() {
        assert_eq!(Switches::from_json("{}").unwrap(), Switches::default());
        let switches = Switches::default();
        assert_eq!(switches.default_max_tokens, DefaultMaxTokens::Tokens(16));
        assert_eq!(switches.max_body_bytes, 32 * 1024 * 1024);
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
            let word = words(name);
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
        }
    }

    const NAMES: [&str; 7] = [
        "default",
        "openai",
        "jiekou",
        "fireworks",
        "vllm",
        "mistralrs",
        "llamacpp",
    ];

    /// The values of a profile's switches, by key.
    fn words(name: &str) -> impl Fn(&str) -> String {
        let json = serde_json::to_value(Switches::profile(name).unwrap()).unwrap();
        move |key| match &json[key] {
            Value::String(word) => word.clone(),
            other => other.to_string(),
        }
    }

    #[test]
    fn some_rows_differ_for_one_vendor() {
        for name in NAMES {
            let word = words(name);
            let has_url = Switches::profile(name).unwrap().schema_url.is_some();
            assert_eq!(has_url, name == "vllm");
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
        }
    }

    #[test]
    fn some_rows_do_not_differ() {
        for name in NAMES {
            let word = words(name);
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
}
