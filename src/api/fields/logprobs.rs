//! The fields that choose the log-probabilities and token ids of an answer (specification 4.4 and 7). `run` and the routes
//! decide on their form.

use serde_json::Value;

use super::declare::{Field, Or, fields};
use super::kinds::{Count, Flag, Word, count, flag, word};
use super::reader::{Fields, invalid_type};
use crate::RequestFault;
use crate::Result;
use crate::api::error::fault;
use crate::api::switches::{LogprobsShape, Switches};
use crate::engine::generation::LogprobsMode;

/// The number of most likely tokens that are listed.
const LISTED: Field<Count> = count(0).up_to("maxLogprobs", |it| it.max_logprobs as usize);

/// The distribution that the log-probabilities describe.
pub(in crate::api) const MODE: Or<Word<LogprobsMode>> = word(&[
    ("raw", LogprobsMode::Raw),
    ("processed", LogprobsMode::Processed),
])
.or_switch("logprobsMode", |it| it.logprobs_mode)
.of("inpage");

fields! {
    LogprobsFields {
        /// The number of most likely tokens that are listed per position; with `top_logprobs` whether any are.
        logprobs: Field<Count> = LISTED.also("bool", "boolean").range("a boolean only beside `top_logprobs`"),
        /// The number of most likely tokens that are listed if `logprobs` is true or a number.
        top_logprobs: Field<Count> = LISTED.range("only with `logprobs`"),
        /// The distribution that `logprobs` describes.
        logprobs_mode: Or<Word<LogprobsMode>> = MODE,
    }
}

fields! {
    TokenListFields {
        /// Name tokens by their ids in `logprobs`, and return `token_ids`.
        return_tokens_as_token_ids: Or<Flag> = flag().or(false).of("vLLM"),
        /// Return `token_ids` and `prompt_token_ids`.
        return_token_ids: Or<Flag> = flag().or(false).of("vLLM"),
        /// The number of most likely tokens that are listed per token of the prompt, in `prompt_logprobs`.
        prompt_logprobs: Field<Count> = LISTED.of("vLLM"),
    }
}

/// The fields of these groups.
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
    let (top, shape) = listed(fields, switches)?;
    Ok(Logprobs {
        top,
        mode: LogprobsFields::logprobs_mode.read(fields, switches)?,
        shape,
        tokens_as_ids: TokenListFields::return_tokens_as_token_ids.read(fields, switches)?,
        token_ids: TokenListFields::return_token_ids.read(fields, switches)?,
        prompt: TokenListFields::prompt_logprobs.read(fields, switches)?,
    })
}

/// Reads the log-probabilities of a message: the best `top` tokens are listed per token.
pub(in crate::api) fn read_of_message(
    fields: &Fields,
    switches: &Switches,
    top: Option<usize>,
    mode: LogprobsMode,
) -> Result<Logprobs> {
    Ok(Logprobs {
        top,
        mode,
        shape: LogprobsShape::Content,
        tokens_as_ids: TokenListFields::return_tokens_as_token_ids.read(fields, switches)?,
        token_ids: TokenListFields::return_token_ids.read(fields, switches)?,
        prompt: TokenListFields::prompt_logprobs.read(fields, switches)?,
    })
}

/// The number of best tokens that are listed per token, if any, and the form of the list.
fn listed(fields: &Fields, switches: &Switches) -> Result<(Option<usize>, LogprobsShape)> {
    let top = LogprobsFields::top_logprobs.read(fields, switches)?;
    let number = || LogprobsFields::logprobs.read(fields, switches);
    match (fields.get(LogprobsFields::logprobs.name), top) {
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
        (Some(given), Some(top)) if given.is_number() => {
            number()?;
            Ok((Some(top), switches.logprobs_shape))
        }
        (Some(boolean @ Value::Bool(_)), None) => {
            let expected = "an integer, or a boolean beside top_logprobs";
            Err(invalid_type("logprobs", expected, boolean))
        }
        _ => Ok((number()?, switches.logprobs_shape)),
    }
}
