//! The fields of `POST /responses` (specification 20.1). What they mean is decided in `parse`.

use crate::api::fields::kinds::{Count, Shape, Text, Word, count, shape, text, unused};
#[cfg(test)]
use crate::api::fields::tools;
use crate::api::fields::{
    Field, Or, constraints, drafting, fields, input, length, logprobs, model, refused, request,
    restrictions, sampling, streaming, structured_outputs, vendors, wire_types,
};
use crate::engine::generation::LogprobsMode;

fields! {
    ResponseOwnFields uses [
        ResponseText, ResponseTool, tools::ToolChoice, ResponseReasoningOptions
    ] {
        /// The maximum number of tokens of the answer, reasoning included.
        max_output_tokens: Field<Count> = count(0).default_is("as `max_tokens`"),
        /// The format of the text: `format` is `text`, `json_object`, or `json_schema` with `schema` beside `type`; `verbosity`
        /// is for chat templates that know the word.
        text: Field<Shape> = shape("object", "ResponseText"),
        /// Functions that the model may call, with `name` and `parameters` beside `type`.
        tools: Field<Shape> = shape("object[]", "ResponseTool[]"),
        /// Whether the model may or must call a tool, and which.
        tool_choice: Field<Shape> = shape("string or object", "ToolChoice").default_is("`auto` with tools"),
        /// Not used: it counts the calls of tools that a vendor runs.
        max_tool_calls: Field<Count> = count(0),
        /// The amount of thinking: `effort` is for chat templates that know the word. No `summary` is made: the
        /// reasoning itself is an item.
        reasoning: Field<Shape> = shape("object", "ResponseReasoningOptions"),
        /// The parts of the answer besides the text.
        include: Field<Shape> = shape(
            "array of `message.output_text.logprobs`, `reasoning.encrypted_content`",
            "(\"message.output_text.logprobs\" | \"reasoning.encrypted_content\")[]",
        ),
        /// The number of most likely tokens that are listed per position.
        top_logprobs: Or<Count> =
            count(0).at_most(20).or(0).range("only with `message.output_text.logprobs` in `include`"),
        /// The distribution that the log-probabilities describe.
        logprobs_mode: Or<Word<LogprobsMode>> = logprobs::MODE,
        /// The treatment of an input that is too long: it is refused, and so is `auto`.
        truncation: Field<Shape> = shape("`disabled`", "\"disabled\""),
        /// Repeated in the answer.
        metadata: Field<Shape> = shape("object of strings", "Record<string, string>"),
        /// Repeated in the answer.
        safety_identifier: Field<Text> = text(),
        /// Repeated in the answer.
        prompt_cache_key: Field<Text> = text(),
        /// Nothing is stored.
        store: Field<Shape> = shape("false", "false"),
        /// Answers are given at once.
        background: Field<Shape> = shape("false", "false"),
    }
}

fields! {
    /// Accepted and not used.
    #[allow(dead_code)]
    UnusedResponseFields {
        /// Not used.
        prompt_cache_options: Field<Shape> = unused(),
    }
}

request! {
    /// A request for a response; `docs/api.md` says what each field means. Unknown fields are passed on.
    ResponseFields:
        model::ModelFields,
        input::InputFields,
        vendors::VendorFields,
        drafting::DraftFields,
        length::LengthFields,
        restrictions::RestrictionFields,
        streaming::StreamingFields,
        sampling::SamplingFields,
        constraints::GrammarFields,
        structured_outputs::StructuredFields,
        ResponseOwnFields,
        UnusedResponseFields,
}

wire_types! {
    /// The format of a response's text.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseText {
        format: Option<ResponseTextFormat>,
        /// The length that the text should have, if the chat template knows the word.
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

    /// The amount of thinking.
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

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    ResponseFields::names().chain(refused::names())
}
