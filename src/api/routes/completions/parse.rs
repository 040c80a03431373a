//! From the body of `POST /completions` to a plan (specification 3 and 4), and how its result is
//! delivered.

use crate::api::error::fault;
use crate::api::fields::{
    Body, Fields, Form, Prompt, Streaming, UnknownFieldPolicy, candidates, constraints, fields,
    images, length, logprobs, missing, model, out_of_range, prompt_tokens, restrictions, sampling,
    streaming, structured_outputs, tools, vendors, wire_types,
};
use crate::api::plan::{Plan, Suffix};
use crate::api::switches::{SuffixMode, Switches};
use crate::{Error, RequestFault, Result};

fields! {
    OwnFields {
        /// One prompt or several, each as text or as token ids; both may be mixed with the switch `mixedPrompts`.
        #[ts(
            type = "string | string[] | ArrayLike<number> | ArrayLike<number>[] | (string | number | (string | number)[])[] | null"
        )]
        prompt: (),
        /// What follows the completion.
        suffix: Option<String>,
        /// What `suffix` means.
        suffix_mode: Option<SuffixMode>,
        /// Put the prompt before the completion.
        echo: Option<bool>,
        /// Put this many tokens of the prompt's end before the completion.
        echo_last: Option<usize>,
        /// Return what the model was given and what it generated, in `raw_output`.
        raw_output: Option<bool>,
        /// Not used: it is about chat templates.
        #[ts(optional, type = "unknown")]
        reasoning_effort: Option<()>,
        /// Not used: it is about chat templates.
        #[ts(optional, type = "unknown")]
        reasoning_history: Option<()>,
        /// Not used: it is about chat templates.
        #[ts(optional, type = "unknown")]
        thinking: Option<()>,
        /// Return times and token counts, in `perf_metrics`.
        perf_metrics_in_response: Option<bool>,
    }
}

wire_types! {
    /// A request; `docs/api.md` says what each field means. Unknown fields are passed on.
    pub(in crate::api) struct CompletionFields {
        #[ts(flatten)]
        model: model::ModelFields,
        #[ts(flatten)]
        own: OwnFields,
        #[ts(flatten)]
        vendors: vendors::VendorFields,
        #[ts(flatten)]
        images: images::ImageFields,
        #[ts(flatten)]
        length: length::LengthFields,
        #[ts(flatten)]
        streaming: streaming::StreamingFields,
        #[ts(flatten)]
        logprobs: logprobs::LogprobsFields,
        #[ts(flatten)]
        candidates: candidates::CandidateFields,
        #[ts(flatten)]
        sampling: sampling::SamplingFields,
        #[ts(flatten)]
        prompt_tokens: prompt_tokens::PromptTokenFields,
        #[ts(flatten)]
        restrictions: restrictions::RestrictionFields,
        #[ts(flatten)]
        constraints: constraints::ConstraintFields,
        #[ts(flatten)]
        structured: structured_outputs::StructuredFields,
        #[ts(flatten)]
        tools: tools::ToolFields,
    }
}

/// The names of all fields of the route.
pub(super) fn known_fields() -> impl Iterator<Item = &'static str> {
    let groups = [
        FIELDS,
        vendors::FIELDS,
        vendors::UNSUPPORTED,
        model::FIELDS,
        images::FIELDS,
        length::FIELDS,
        streaming::FIELDS,
        logprobs::FIELDS,
        candidates::FIELDS,
        sampling::FIELDS,
        prompt_tokens::FIELDS,
        restrictions::FIELDS,
        constraints::FIELDS,
        structured_outputs::FIELDS,
        tools::FIELDS,
    ];
    groups.into_iter().flatten().copied()
}

/// Parses and validates a body. `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Streaming)> {
    let mut unknown = UnknownFieldPolicy {
        behavior: switches.unknown_fields,
        warn: &mut warn_unknown,
    };
    let Body { fields, prompts } = Body::parse(body, switches.max_prompts, switches.mixed_prompts)?;
    for name in fields.names() {
        if known_fields().all(|known| known != name) {
            unknown.report(name)?;
        }
    }
    vendors::check(&fields)?;
    let model = model::read(&fields, switches)?;
    let prompts = prompts.ok_or_else(|| missing("prompt"))??;
    let suffix = suffix(&fields, switches, &prompts)?;
    model::check_user(&fields)?;
    let images = images::read(&fields, prompts.len(), switches)?;
    let length = length::read(&fields, switches, switches.default_max_tokens, None)?;
    let streaming = streaming::read(&fields, switches, &mut unknown)?;
    let (n, best_of) = candidates::read(&fields, switches, streaming.stream)?;
    let logprobs = logprobs::read(&fields, switches)?;
    let (echo, echo_last) = echo(&fields)?;
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
        raw_output: fields.boolean("raw_output")?.unwrap_or(false),
        perf_metrics: fields.boolean("perf_metrics_in_response")?.unwrap_or(false),
        n,
        best_of,
        logprobs,
        prompt_tokens: prompt_tokens::read(&fields, true)?,
        restrictions: restrictions::read(&fields)?,
        sampling,
        constraint,
        message: None,
        repeats_delivered: false,
    };
    Ok((plan, streaming))
}

/// Whether the prompt is echoed, and how many of its last tokens.
fn echo(fields: &Fields) -> Result<(bool, Option<usize>)> {
    let echo = fields.boolean("echo")?.unwrap_or(false);
    match fields.count("echo_last")? {
        None => Ok((echo, None)),
        Some(_) if echo => Err(fault(
            RequestFault::ConflictingParameters,
            "echo_last",
            "echo_last: echo already returns the whole prompt",
        )),
        Some(last) => Ok((last > 0, Some(last))),
    }
}

fn suffix(fields: &Fields, switches: &Switches, prompts: &[Prompt]) -> Result<Suffix> {
    let mode = match fields.word("suffix_mode", &["append", "fim", "reject"])? {
        None => switches.suffix_mode,
        Some("append") => SuffixMode::Append,
        Some("fim") => SuffixMode::Fim,
        Some(_) => SuffixMode::Reject,
    };
    let suffix = match fields.string("suffix")? {
        None | Some("") => return Ok(Suffix::None),
        Some(suffix) => suffix.to_owned(),
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
    fault(RequestFault::UnsupportedParameter, "suffix", message)
}
