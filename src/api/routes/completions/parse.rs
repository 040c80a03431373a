//! From the body of `POST /completions` to a plan (specification 3 and 4), and how its result is
//! delivered.

use crate::api::error::fault;
use crate::api::fields::kinds::{
    Count, Flag, Shape, Text, Word, count, flag, shape, text, unused, word,
};
use crate::api::fields::{
    Body, Field, Fields, Form, Or, Prompt, Streaming, UnknownFieldPolicy, candidates, constraints,
    drafting, fields, images, length, logprobs, missing, model, out_of_range, prompt_tokens,
    refused, request, restrictions, sampling, streaming, structured_outputs, tools, vendors,
};
use crate::api::plan::{Plan, Suffix};
use crate::api::switches::{SuffixMode, Switches};
use crate::{Error, RequestFault, Result};

fields! {
    PromptFields {
        /// One prompt or several, each as a string or as token ids; both may be mixed with the switch `mixedPrompts`.
        prompt: Field<Shape> = shape(
            "string, string[], int[], int[][]",
            "string | string[] | ArrayLike<number> | ArrayLike<number>[] | (string | number | (string | number)[])[] | null",
        )
        .required(),
        /// The text that follows the completion.
        suffix: Field<Text> = text(),
        /// The meaning of `suffix`.
        suffix_mode: Or<Word<SuffixMode>> = word(&[
            ("append", SuffixMode::Append),
            ("fim", SuffixMode::Fim),
            ("reject", SuffixMode::Reject),
        ])
        .or_switch("suffixMode", |it| it.suffix_mode)
        .of("inpage"),
    }
}

fields! {
    EchoFields {
        /// Put the prompt before the completion.
        echo: Or<Flag> = flag().or(false),
        /// Put this many tokens of the prompt's end before the completion.
        echo_last: Field<Count> = count(0).of("Fireworks"),
        /// Return what the model was given and what it generated, in `raw_output` of each choice.
        raw_output: Or<Flag> = flag().or(false).of("Fireworks"),
        /// Return times and token counts, in `perf_metrics`.
        perf_metrics_in_response: Or<Flag> = flag().or(false).of("Fireworks"),
    }
}

fields! {
    /// Accepted and not used: they are about chat templates.
    #[allow(dead_code)]
    UnusedTemplateFields {
        /// Not used: it is about chat templates.
        chat_template_kwargs: Field<Shape> = unused().of("vLLM"),
        /// Not used: it is about chat templates.
        enable_thinking: Field<Shape> = unused().of("mistral.rs"),
        /// Not used: it is about chat templates.
        reasoning_effort: Field<Shape> = unused(),
        /// Not used: it is about chat templates.
        reasoning_history: Field<Shape> = unused().of("Fireworks"),
        /// Not used: it is about chat templates.
        thinking: Field<Shape> = unused().of("Fireworks"),
        /// Not used: it is about chat templates.
        verbosity: Field<Shape> = unused(),
    }
}

request! {
    /// A request; `docs/api.md` says what each field means. Unknown fields are passed on.
    CompletionFields:
        model::ModelFields,
        PromptFields,
        prompt_tokens::PromptTokenFields,
        prompt_tokens::TruncationFields,
        images::ImageFields,
        vendors::VendorFields,
        drafting::DraftFields,
        UnusedTemplateFields,
        length::LengthFields,
        restrictions::RestrictionFields,
        streaming::StreamingFields,
        candidates::CandidateFields,
        EchoFields,
        logprobs::LogprobsFields,
        logprobs::TokenListFields,
        sampling::SamplingFields,
        constraints::FormatFields,
        constraints::GrammarFields,
        structured_outputs::StructuredFields,
        tools::ToolFields,
}

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    CompletionFields::names().chain(refused::names())
}

/// Parses and validates a body. `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Streaming)> {
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let Body { fields, prompts } = Body::parse(body, switches.max_prompts, switches.mixed_prompts)?;
    unknown.check(fields.names(), known_fields)?;
    refused::check(&fields, CompletionFields::names)?;
    let model = model::read(&fields, switches)?;
    let prompts = prompts.ok_or_else(|| missing(PromptFields::prompt.name))??;
    let suffix = suffix(&fields, switches, &prompts)?;
    model::check_user(&fields)?;
    let images = images::read(&fields, prompts.len(), switches)?;
    let length = length::read(&fields, switches, switches.default_max_tokens, None)?;
    let streaming = streaming::read(&fields, switches, &mut unknown)?;
    let (n, best_of) = candidates::read(&fields, switches, streaming.stream)?;
    let logprobs = logprobs::read(&fields, switches)?;
    let (echo, echo_last) = echo(&fields, switches)?;
    let sampling = sampling::read(&fields, switches)?;
    let constraint = constraints::read(&fields, switches, Form::Nested)?;
    if prompts.len().saturating_mul(best_of) > switches.max_sequences {
        let bounds = format!(
            "at most {} candidates over all prompts",
            switches.max_sequences
        );
        let given = format!("{} prompts of {best_of} each", prompts.len());
        return Err(out_of_range("prompt", &bounds, given));
    }
    let plan = Plan {
        model,
        prompts,
        images,
        suffix,
        length,
        echo,
        echo_last,
        raw_output: EchoFields::raw_output.read(&fields, switches)?,
        perf_metrics: EchoFields::perf_metrics_in_response.read(&fields, switches)?,
        n,
        best_of,
        logprobs,
        prompt_tokens: prompt_tokens::read(&fields, switches)?,
        restrictions: restrictions::read(&fields, switches)?,
        drafting: drafting::read(&fields, switches)?,
        sampling,
        constraint,
        message: None,
        repeats_delivered: false,
    };
    Ok((plan, streaming))
}

/// Whether the prompt is echoed, and how many of its last tokens.
fn echo(fields: &Fields, switches: &Switches) -> Result<(bool, Option<usize>)> {
    let echo = EchoFields::echo.read(fields, switches)?;
    match EchoFields::echo_last.read(fields, switches)? {
        None => Ok((echo, None)),
        Some(_) if echo => Err(fault(
            RequestFault::ConflictingParameters,
            EchoFields::echo_last.name,
            "echo_last: echo already returns the whole prompt",
        )),
        Some(last) => Ok((last > 0, Some(last))),
    }
}

fn suffix(fields: &Fields, switches: &Switches, prompts: &[Prompt]) -> Result<Suffix> {
    let mode = PromptFields::suffix_mode.read(fields, switches)?;
    let suffix = match PromptFields::suffix.read(fields, switches)? {
        Some(suffix) if !suffix.is_empty() => suffix,
        _ => return Ok(Suffix::None),
    };
    let is_tokenized = |prompt: &Prompt| !matches!(prompt, Prompt::Text(_));
    match mode {
        SuffixMode::Append => Ok(Suffix::Append(suffix)),
        SuffixMode::Fim if !prompts.iter().any(is_tokenized) => Ok(Suffix::FillInMiddle(suffix)),
        SuffixMode::Fim => Err(unsupported_suffix(
            "suffix: filling in the middle needs a prompt that is text, not token ids",
        )),
        SuffixMode::Reject => Err(unsupported_suffix(
            "suffix is not supported: suffixMode is reject",
        )),
    }
}

fn unsupported_suffix(message: &str) -> Error {
    fault(
        RequestFault::UnsupportedParameter,
        PromptFields::suffix.name,
        message,
    )
}
