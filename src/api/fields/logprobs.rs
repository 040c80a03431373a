//! Which log-probabilities and token ids an answer lists (specification 4.4 and 7). How they are listed is
//! decided in `run` and by the routes.

use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, invalid_type};
use crate::RequestFault;
use crate::Result;
use crate::api::error::fault;
use crate::api::switches::{LogprobsShape, Switches};
use crate::engine::generation::LogprobsMode;

fields! {
    LogprobsFields {
        /// How many of the most likely tokens are listed per position; with `top_logprobs` whether any are.
        #[ts(optional, type = "number | boolean | null")]
        logprobs: Option<()>,
        /// How many of the most likely tokens are listed if `logprobs` is true or a number.
        top_logprobs: Option<u32>,
        /// Which distribution `logprobs` describes.
        #[ts(optional, type = "\"raw\" | \"processed\" | null")]
        logprobs_mode: Option<LogprobsMode>,
        /// Name tokens by their ids in `logprobs`, and return `token_ids`.
        return_tokens_as_token_ids: Option<bool>,
        /// Return `token_ids` and `prompt_token_ids`.
        return_token_ids: Option<bool>,
        /// How many of the most likely tokens are listed per token of the prompt, in `prompt_logprobs`.
        prompt_logprobs: Option<u32>,
    }
}

/// The fields of this group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::api) struct Logprobs {
    /// Best tokens listed per token; `None`: no log-probabilities at all.
    pub top: Option<usize>,
    pub mode: LogprobsMode,
    pub shape: LogprobsShape,
    /// Name listed tokens by their ids, and report the ids.
    pub tokens_as_ids: bool,
    /// Report the ids of prompt and completion.
    pub token_ids: bool,
    /// Best tokens listed per token of the prompt, apart from an echo.
    pub prompt: Option<usize>,
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<Logprobs> {
    let mode = match fields.word("logprobs_mode", &["raw", "processed"])? {
        None => switches.logprobs_mode,
        Some("raw") => LogprobsMode::Raw,
        Some(_) => LogprobsMode::Processed,
    };
    let (top, shape) = listed(fields, switches)?;
    Ok(Logprobs {
        top,
        mode,
        shape,
        tokens_as_ids: fields
            .boolean("return_tokens_as_token_ids")?
            .unwrap_or(false),
        token_ids: fields.boolean("return_token_ids")?.unwrap_or(false),
        prompt: count(fields, switches, "prompt_logprobs")?,
    })
}

/// How many best tokens are listed per token, if any, and in which form.
fn listed(fields: &Fields, switches: &Switches) -> Result<(Option<usize>, LogprobsShape)> {
    let top = count(fields, switches, "top_logprobs")?;
    match (fields.get("logprobs"), top) {
        (Some(Value::Bool(true)), top) if top.is_some() || switches.boolean_logprobs => {
            Ok((Some(top.unwrap_or(0)), LogprobsShape::Content))
        }
        (Some(Value::Bool(false)), None) if switches.boolean_logprobs => {
            Ok((None, switches.logprobs_shape))
        }
        (Some(Value::Bool(false)) | None, Some(1..)) => Err(fault(
            RequestFault::InvalidValue,
            "top_logprobs",
            "top_logprobs needs logprobs",
        )),
        (Some(Value::Bool(false)) | None, Some(0)) => Ok((None, switches.logprobs_shape)),
        // Beside a number it says how many are listed, in the form of the number.
        (Some(number), Some(top)) if number.is_number() => {
            count(fields, switches, "logprobs")?;
            Ok((Some(top), switches.logprobs_shape))
        }
        (Some(boolean @ Value::Bool(_)), None) => {
            let expected = "an integer, or a boolean beside top_logprobs";
            Err(invalid_type("logprobs", expected, boolean))
        }
        _ => Ok((
            count(fields, switches, "logprobs")?,
            switches.logprobs_shape,
        )),
    }
}

/// A number of tokens to list.
fn count(fields: &Fields, switches: &Switches, name: &str) -> Result<Option<usize>> {
    let count = fields.integer(name, 0..=switches.max_logprobs.into())?;
    // Bounded by a switch of 32 bits.
    Ok(count.map(|count| count as usize))
}
