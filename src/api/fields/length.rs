//! How long a completion may be and what ends it (specification 4.3, 6 and 11): limits, stop strings,
//! context rules. They are applied in `run`.

use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, invalid_type, invalid_value, out_of_range};
use crate::api::error::fault;
use crate::api::switches::{ContextLengthExceededBehavior, DefaultMaxTokens, Switches};
use crate::{Error, RequestFault, Result};

fields! {
    LengthFields {
        /// Most tokens of a completion.
        max_tokens: Option<usize>,
        /// The same as `max_tokens`.
        max_completion_tokens: Option<usize>,
        /// The same as `max_tokens`; -1: until the context is full.
        n_predict: Option<i64>,
        /// Texts that end the completion.
        #[ts(optional, type = "string | string[] | null")]
        stop: Option<()>,
        /// Token ids that end the completion.
        stop_token_ids: Option<Vec<u32>>,
        /// Nothing ends the completion before it has this many tokens.
        min_tokens: Option<usize>,
        /// Whether the completion includes the stop string that ended it.
        include_stop_str_in_output: Option<bool>,
        /// Whether special tokens are left out of the text.
        skip_special_tokens: Option<bool>,
        /// Continue after an end-of-text token.
        ignore_eos: Option<bool>,
        /// What happens when the prompt and `max_tokens` exceed the context.
        context_length_exceeded_behavior: Option<ContextLengthExceededBehavior>,
        /// Drop the start of a prompt that is too long.
        truncate_sequence: Option<bool>,
    }
}

const MAX_STOP_TOKEN_IDS: usize = 1024;

/// The fields of this group.
#[derive(Debug, Clone)]
pub(in crate::api) struct Length {
    /// `None`: the switch `defaultMaxTokens` decides.
    pub max_tokens: Option<usize>,
    /// Without `max_tokens`: generate until the context is full, whatever the switch says.
    pub fills_context: bool,
    /// None of them empty.
    pub stop: Vec<String>,
    /// They end a choice like stop strings.
    pub stop_token_ids: Vec<u32>,
    /// Tokens before which no end-of-text token, stop id or stop string ends a choice.
    pub min_tokens: usize,
    pub include_stop: bool,
    pub skip_special_tokens: bool,
    pub ignore_eos: bool,
    pub exceeded_behavior: ContextLengthExceededBehavior,
    /// Shorten a prompt that is too long from its start.
    pub truncate_sequence: bool,
}

/// `default_max_tokens` holds without `max_tokens`. `own_name` is what the route calls `max_tokens` besides its names in
/// [`FIELDS`].
pub(in crate::api) fn read(
    fields: &Fields,
    switches: &Switches,
    default_max_tokens: DefaultMaxTokens,
    own_name: Option<&str>,
) -> Result<Length> {
    let (max_tokens, fills_context) = max_tokens(fields, own_name)?;
    let behavior = fields.word("context_length_exceeded_behavior", &["truncate", "error"])?;
    Ok(Length {
        stop: stop(fields, switches)?,
        stop_token_ids: stop_token_ids(fields)?,
        min_tokens: min_tokens(fields, max_tokens, fills_context, default_max_tokens)?,
        include_stop: fields
            .boolean("include_stop_str_in_output")?
            .unwrap_or(switches.stop_text_included),
        skip_special_tokens: fields.boolean("skip_special_tokens")?.unwrap_or(true),
        ignore_eos: fields.boolean("ignore_eos")?.unwrap_or(false),
        exceeded_behavior: match behavior {
            None => switches.context_length_exceeded_behavior,
            Some("error") => ContextLengthExceededBehavior::Error,
            Some(_) => ContextLengthExceededBehavior::Truncate,
        },
        truncate_sequence: fields.boolean("truncate_sequence")?.unwrap_or(false),
        max_tokens,
        fills_context,
    })
}

/// The number of tokens if one is given, and whether `n_predict` asks for all that fit.
fn max_tokens(fields: &Fields, own_name: Option<&str>) -> Result<(Option<usize>, bool)> {
    let own = own_name.map_or(Ok(None), |name| fields.count(name))?;
    let given = either(own, "max_tokens", fields.count("max_tokens")?)?;
    let given = either(
        given,
        "max_completion_tokens",
        fields.count("max_completion_tokens")?,
    )?;
    match fields.integer("n_predict", -1..=i128::MAX)? {
        Some(-1) if given.is_some() => Err(differs("n_predict", -1)),
        Some(-1) => Ok((None, true)),
        predicted => {
            let tokens = |tokens| usize::try_from(tokens).unwrap_or(usize::MAX);
            Ok((either(given, "n_predict", predicted.map(tokens))?, false))
        }
    }
}

/// The same number by two names.
fn either(given: Option<usize>, alias: &str, other: Option<usize>) -> Result<Option<usize>> {
    match (given, other) {
        (Some(one), Some(other)) if one != other => Err(differs(alias, other)),
        (one, other) => Ok(one.or(other)),
    }
}

fn differs(alias: &str, given: impl std::fmt::Display) -> Error {
    let message = format!("{alias} is {given}, but another name of it has another value");
    fault(RequestFault::ConflictingParameters, alias, message)
}

fn stop_token_ids(fields: &Fields) -> Result<Vec<u32>> {
    let name = "stop_token_ids";
    let ids = fields.token_ids(name)?.unwrap_or_default();
    if ids.len() > MAX_STOP_TOKEN_IDS {
        let bounds = format!("at most {MAX_STOP_TOKEN_IDS} ids");
        return Err(out_of_range(name, &bounds, ids.len()));
    }
    Ok(ids)
}

fn min_tokens(
    fields: &Fields,
    max_tokens: Option<usize>,
    fills_context: bool,
    default_max_tokens: DefaultMaxTokens,
) -> Result<usize> {
    let min_tokens = fields.count("min_tokens")?.unwrap_or(0);
    let most = max_tokens.or(match default_max_tokens {
        DefaultMaxTokens::Tokens(tokens) if !fills_context => Some(tokens),
        _ => None,
    });
    match most {
        Some(most) if min_tokens > most => {
            let bounds = format!("at most max_tokens = {most}");
            Err(out_of_range("min_tokens", &bounds, min_tokens))
        }
        _ => Ok(min_tokens),
    }
}

fn stop(fields: &Fields, switches: &Switches) -> Result<Vec<String>> {
    let stops = match fields.get("stop") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(elements)) => elements
            .iter()
            .map(|element| match element {
                Value::String(text) => Ok(text.clone()),
                other => Err(invalid_type("stop", "made of strings", other)),
            })
            .collect::<Result<_>>()?,
        Some(other) => return Err(invalid_type("stop", "a string or an array", other)),
    };
    if stops.len() > switches.max_stop_sequences {
        let bounds = format!("at most {} strings", switches.max_stop_sequences);
        return Err(out_of_range("stop", &bounds, stops.len()));
    }
    if stops.iter().any(String::is_empty) {
        return Err(invalid_value("stop", "a stop string must not be empty"));
    }
    Ok(stops)
}
