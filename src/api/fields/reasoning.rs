//! `reasoning` of chat, as OpenRouter has it (specification 18.12): how much the model thinks, and whether the answer has the reasoning. Each member
//! except `summary` means the same as another field; the readers of those fields combine them with `agreed`.

use super::declare::{Field, fields, wire_types};
use super::kinds::{Shape, shape};
use super::reader::{Fields, members, within};
use super::thinking::EFFORTS;
use super::unknown::UnknownFieldPolicy;
use crate::api::error::fault;
use crate::{RequestFault, Result};

fields! {
    ReasoningFields uses [ReasoningOptions] {
        /// Whether and how much the model thinks, and whether the answer has the reasoning. `effort` is the same as `reasoning_effort`, `max_tokens` as
        /// `thinking_token_budget`, `enabled` as `enable_thinking`, and `exclude: true` as `include_reasoning: false`.
        reasoning: Field<Shape> = shape("object", "ReasoningOptions").of("OpenRouter"),
    }
}

wire_types! {
    /// How much the model thinks, and whether the answer has the reasoning. Either `effort` or `max_tokens`.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ReasoningOptions {
        #[ts(optional, type = "\"none\" | \"minimal\" | \"low\" | \"medium\" | \"high\" | \"xhigh\" | \"max\" | null")]
        effort: Option<()>,
        /// The maximum number of tokens of thinking.
        max_tokens: Option<usize>,
        /// Whether the model thinks; true with `effort` or `max_tokens` unless it is given.
        enabled: Option<bool>,
        /// Whether the reasoning is left out of the answer.
        exclude: Option<bool>,
        /// The form of a summary. It has no effect, because the answer has the reasoning itself.
        #[ts(optional, type = "\"auto\" | \"concise\" | \"detailed\" | null")]
        summary: Option<()>,
    }
}

const NAME: &str = ReasoningFields::reasoning.name;
const MEMBERS: [&str; 5] = ["effort", "max_tokens", "enabled", "exclude", "summary"];

/// The value of the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::api) struct Reasoning {
    pub effort: Option<&'static str>,
    /// The most tokens of thinking.
    pub max_tokens: Option<usize>,
    pub enabled: Option<bool>,
    /// Whether the answer leaves the reasoning out.
    pub exclude: Option<bool>,
}

impl Reasoning {
    /// Whether the model thinks where no field says so: with an effort or a number of tokens it does. The efforts `none` and `minimal` switch
    /// thinking off as values of `reasoning_effort`.
    pub(in crate::api) fn inferred(&self) -> Option<bool> {
        let has_effort = self
            .effort
            .is_some_and(|effort| effort != "none" && effort != "minimal");
        let has_tokens = self.max_tokens.is_some_and(|tokens| tokens > 0);
        (has_effort || has_tokens).then_some(true)
    }
}

/// Reads the field; all members are `None` if it is absent.
///
/// # Errors
/// `conflicting_parameters` with both `effort` and `max_tokens`, and values of wrong types.
pub(in crate::api) fn read(fields: &Fields) -> Result<Reasoning> {
    let Some(given) = members(fields, NAME)? else {
        return Ok(Reasoning::default());
    };
    let summaries = ["auto", "concise", "detailed"];
    within(NAME, "summary", given.word("summary", &summaries))?;
    let reasoning = Reasoning {
        effort: within(NAME, "effort", given.word("effort", EFFORTS))?,
        max_tokens: within(NAME, "max_tokens", given.count("max_tokens"))?,
        enabled: within(NAME, "enabled", given.boolean("enabled"))?,
        exclude: within(NAME, "exclude", given.boolean("exclude"))?,
    };
    if reasoning.effort.is_some() && reasoning.max_tokens.is_some() {
        let message = "reasoning.effort and reasoning.max_tokens cannot be combined";
        return Err(fault(RequestFault::ConflictingParameters, NAME, message));
    }
    Ok(reasoning)
}

/// Applies the policy to members that the field does not have.
///
/// # Errors
/// `unknown_parameter`, and `invalid_type` if the field is not an object.
pub(in crate::api) fn check_unknown(
    fields: &Fields,
    unknown: &mut UnknownFieldPolicy<'_>,
) -> Result<()> {
    let Some(given) = members(fields, NAME)? else {
        return Ok(());
    };
    unknown.check_members(NAME, &given, &MEMBERS)
}

/// The value of a setting that several fields can have, and the field; `None` if no field has it. A field may be named with its member.
///
/// # Errors
/// `conflicting_parameters` for the first of two fields that differ.
pub(in crate::api) fn agreed<T: Copy + PartialEq>(
    given: &[(&'static str, Option<T>)],
) -> Result<Option<(&'static str, T)>> {
    let mut given = given
        .iter()
        .filter_map(|&(path, value)| Some((path, value?)));
    let Some((path, value)) = given.next() else {
        return Ok(None);
    };
    let field = path.split_once('.').map_or(path, |(field, _)| field);
    match given.find(|(_, other)| *other != value) {
        None => Ok(Some((field, value))),
        Some((other, _)) => {
            let message = format!("{path} and {other} differ");
            Err(fault(RequestFault::ConflictingParameters, field, message))
        }
    }
}
