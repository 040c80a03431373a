//! The fields of `POST /messages` (specification 22.1). What they mean is decided in `parse`.

use crate::api::fields::declare::Setting;
use crate::api::fields::kinds::{
    Count, Number, Shape, Strings, count, number, shape, strings, unused,
};
#[cfg(test)]
use crate::api::fields::thinking;
use crate::api::fields::{
    Field, Or, blocks, constraints, drafting, fields, length, model, refused, request,
    restrictions, sampling, streaming, structured_outputs, vendors, wire_types,
};
use crate::api::switches::SamplingBounds;

fields! {
    MessageOwnFields uses [
        MessageTool, MessageToolChoice, thinking::ThinkingOptions, MessageOutputConfig, MessageFormat
    ] {
        /// The maximum number of tokens of the answer, thinking included. Counting tokens needs no limit.
        max_tokens: Field<Count> = count(0).required(),
        /// Strings that end the answer; it does not include them.
        stop_sequences: Field<Strings> =
            strings().up_to("maxStopSequences", |it| it.max_stop_sequences),
        /// Below 1e-5 the most likely token is taken.
        temperature: Or<Number> = number(Number::Within(
            0.0,
            Setting::Switch("samplingBounds", |it| match it.sampling_bounds {
                SamplingBounds::Standard => 1.0,
                SamplingBounds::Open => f64::INFINITY,
            }),
        ))
        .or(1.0),
        /// Functions that the model may call. Tools that Anthropic defines are refused.
        tools: Field<Shape> = shape("object[]", "MessageTool[]"),
        /// Whether the model may or must call a tool, and which; `disable_parallel_tool_use` is a member of it.
        tool_choice: Field<Shape> =
            shape("object", "MessageToolChoice").default_is("`auto` with tools"),
        /// Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and
        /// `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking.
        thinking: Field<Shape> = shape("object", "ThinkingOptions").default_is("disabled"),
        /// `format` is what the text must be; `effort` is for chat templates that know the word.
        output_config: Field<Shape> = shape("object", "MessageOutputConfig"),
        /// An older name of `output_config.format`.
        output_format: Field<Shape> = shape("object", "MessageFormat"),
    }
}

fields! {
    /// Accepted and not used.
    #[allow(dead_code)]
    UnusedMessageFields {
        /// Not used: prompts are cached without it.
        cache_control: Field<Shape> = unused(),
        /// Not used.
        diagnostics: Field<Shape> = unused(),
        /// Not used.
        inference_geo: Field<Shape> = unused(),
        /// Not used.
        speed: Field<Shape> = unused(),
        /// Not used.
        user_profile_id: Field<Shape> = unused(),
        /// Not used.
        workspace_id: Field<Shape> = unused(),
    }
}

request! {
    /// A request for a message in Anthropic's form; `docs/api.md` says what each field means. Unknown fields are passed on.
    MessageFields:
        model::ModelFields,
        blocks::TurnFields,
        vendors::VendorFields,
        drafting::DraftFields,
        length::LengthFields,
        restrictions::RestrictionFields,
        streaming::StreamingFields,
        sampling::SamplingFields,
        constraints::GrammarFields,
        structured_outputs::StructuredFields,
        MessageOwnFields,
        UnusedMessageFields,
}

wire_types! {
    /// A function that the model may call.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct MessageTool {
        #[ts(optional, type = "\"custom\" | null")]
        r#type: Option<()>,
        name: String,
        description: Option<String>,
        /// A JSON schema of an object. The arguments satisfy it.
        #[ts(type = "Record<string, unknown>")]
        input_schema: (),
        strict: Option<bool>,
    }

    /// Whether the model may or must call a tool, and which.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum MessageToolChoice {
        #[ts(optional_fields = nullable)]
        Auto { disable_parallel_tool_use: Option<bool> },
        #[ts(optional_fields = nullable)]
        Any { disable_parallel_tool_use: Option<bool> },
        #[ts(optional_fields = nullable)]
        Tool { name: String, disable_parallel_tool_use: Option<bool> },
        None,
    }

    /// Settings of the answer.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct MessageOutputConfig {
        format: Option<MessageFormat>,
        /// If the chat template knows the word.
        #[ts(optional, type = "\"low\" | \"medium\" | \"high\" | \"xhigh\" | \"max\" | null")]
        effort: Option<()>,
    }

    /// The JSON schema that the text must satisfy.
    pub(in crate::api) struct MessageFormat {
        #[ts(type = "\"json_schema\"")]
        r#type: (),
        schema: constraints::JsonSchema,
    }
}

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    MessageFields::names().chain(refused::names())
}
