//! The fields of `POST /responses` (specification 20.1). What they mean is decided in `parse`.

#[cfg(test)]
use crate::api::fields::{constraints, tools};
use crate::api::fields::{
    fields, input, length, model, restrictions, sampling, streaming, structured_outputs, vendors,
    wire_types,
};
#[cfg(test)]
use crate::engine::generation::LogprobsMode;

fields! {
    #[ts(rename = "ResponseOwnFields")]
    OwnFields {
        /// Most tokens of the answer, reasoning included.
        max_output_tokens: Option<usize>,
        /// What the text must be.
        text: Option<ResponseText>,
        /// Functions that the model may call.
        tools: Option<Vec<ResponseTool>>,
        /// Whether the model may or must call a tool, and which.
        tool_choice: Option<tools::ToolChoice>,
        /// Not used: it counts the calls of tools that a vendor runs.
        max_tool_calls: Option<u32>,
        /// How much the model should think.
        reasoning: Option<ResponseReasoningOptions>,
        /// What the answer has besides the text.
        #[ts(optional, type = "(\"message.output_text.logprobs\" | \"reasoning.encrypted_content\")[] | null")]
        include: Option<()>,
        /// How many of the most likely tokens are listed per position: 0 to 20, with `include`.
        top_logprobs: Option<u32>,
        /// Which distribution the log-probabilities describe.
        #[ts(optional, type = "\"raw\" | \"processed\" | null")]
        logprobs_mode: Option<LogprobsMode>,
        /// What the whole text must match; a text is GBNF.
        grammar: Option<constraints::Grammar>,
        /// A JSON schema.
        json_schema: Option<constraints::JsonSchema>,
        /// What happens to an input that is too long: it is refused.
        #[ts(optional, type = "\"disabled\" | null")]
        truncation: Option<()>,
        /// Repeated in the answer.
        #[ts(optional, type = "Record<string, string> | null")]
        metadata: Option<()>,
        /// Repeated in the answer.
        safety_identifier: Option<String>,
        /// Repeated in the answer.
        prompt_cache_key: Option<String>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_options: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_retention: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        service_tier: Option<()>,
        /// Nothing is stored.
        #[ts(optional, type = "false | null")]
        store: Option<()>,
        /// Answers are given at once.
        #[ts(optional, type = "false | null")]
        background: Option<()>,
    }
}

wire_types! {
    /// A request for a response; `docs/api.md` says what each field means. Unknown fields are passed on.
    pub(in crate::api) struct ResponseFields {
        #[ts(flatten)]
        model: model::ModelFields,
        #[ts(flatten)]
        input: input::InputFields,
        #[ts(flatten)]
        own: OwnFields,
        #[ts(flatten)]
        length: length::LengthFields,
        #[ts(flatten)]
        streaming: streaming::StreamingFields,
        #[ts(flatten)]
        sampling: sampling::SamplingFields,
        #[ts(flatten)]
        restrictions: restrictions::RestrictionFields,
        #[ts(flatten)]
        structured: structured_outputs::StructuredFields,
    }

    /// What the text of a response must be.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseText {
        format: Option<ResponseTextFormat>,
        /// How long the text should be, if the chat template knows the word.
        #[ts(optional, type = "\"low\" | \"medium\" | \"high\" | null")]
        verbosity: Option<()>,
    }

    /// Whether the text must be JSON.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ResponseTextFormat {
        Text,
        JsonObject,
        #[ts(optional_fields = nullable)]
        JsonSchema {
            schema: constraints::JsonSchema,
            name: Option<String>,
            description: Option<String>,
            strict: Option<bool>,
        },
    }

    /// A function that the model may call.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseTool {
        #[ts(type = "\"function\"")]
        r#type: (),
        name: String,
        description: Option<String>,
        /// A JSON schema of an object.
        #[ts(optional, type = "Record<string, unknown> | null")]
        parameters: Option<()>,
        /// Whether the arguments must satisfy `parameters`.
        strict: Option<bool>,
    }

    /// How much the model should think.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseReasoningOptions {
        /// If the chat template knows the word.
        #[ts(optional, type = "\"none\" | \"minimal\" | \"low\" | \"medium\" | \"high\" | \"xhigh\" | \"max\" | null")]
        effort: Option<()>,
        /// No summary is made: the reasoning itself is in the answer.
        #[ts(optional, type = "\"auto\" | \"concise\" | \"detailed\" | null")]
        summary: Option<()>,
        /// The same as `summary`.
        #[ts(optional, type = "\"auto\" | \"concise\" | \"detailed\" | null")]
        generate_summary: Option<()>,
    }
}

/// Fields that need a server which keeps answers or runs more than the model. Null and false change nothing.
pub(super) const UNSUPPORTED: &[(&str, &str)] = &[
    ("background", "answers are given at once, not later"),
    ("context_management", "the context is not compacted"),
    ("conversation", "no conversations are stored"),
    ("moderation", "there is no moderation model"),
    (
        "previous_response_id",
        "no answers are stored: send the items",
    ),
    ("prompt", "there are no stored prompts"),
    ("store", "no answers are stored"),
];

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    let groups = [
        FIELDS,
        vendors::FIELDS,
        vendors::UNSUPPORTED,
        model::FIELDS,
        input::FIELDS,
        length::FIELDS,
        streaming::FIELDS,
        sampling::FIELDS,
        restrictions::FIELDS,
        structured_outputs::FIELDS,
    ];
    let unsupported = UNSUPPORTED.iter().map(|(name, _)| *name);
    groups.into_iter().flatten().copied().chain(unsupported)
}
