//! What goes in beside the prompts (specification 4.2): model, suffix, user. Loads and tokenises
//! nothing.

use super::fields::{Fields, fields};
use super::prompt::Prompt;
use crate::api::error::fault;
use crate::api::switches::{SuffixMode, Switches};
use crate::{Error, RequestFault, Result};

fields! {
    InputFields {
        /// A model's id, or `default` for the one that is ready.
        model: String,
        /// One prompt or several, each as text or as token ids.
        #[ts(type = "string | string[] | ArrayLike<number> | ArrayLike<number>[]")]
        prompt: (),
        /// What follows the completion.
        suffix: Option<String>,
        /// What `suffix` means.
        suffix_mode: Option<SuffixMode>,
        /// `data:` URLs, or one list of them per prompt.
        #[ts(optional, type = "string[] | string[][] | null")]
        images: Option<()>,
        /// Not used.
        user: Option<String>,
    }
}

/// What `suffix` and `suffix_mode` come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Suffix {
    /// Nothing.
    None,
    /// Goes after the text of every choice, as it is; not empty.
    Append(String),
    /// What the model writes goes between the prompt, which is text, and this; not empty.
    FillInMiddle(String),
}

pub(super) fn model(fields: &Fields, switches: &Switches) -> Result<String> {
    match fields.string("model")? {
        Some(model) if !model.is_empty() => Ok(model.to_owned()),
        _ if switches.allow_missing_model => Ok("default".to_owned()),
        _ => Err(missing("model")),
    }
}

/// `model` or `prompt` is not there.
pub(super) fn missing(name: &str) -> Error {
    fault(
        RequestFault::MissingRequiredParameter,
        name,
        format!("{name} is required"),
    )
}

/// `user` is never used, but must be right.
pub(super) fn check_user(fields: &Fields) -> Result<()> {
    fields.string("user").map(drop)
}

pub(super) fn suffix(fields: &Fields, switches: &Switches, prompts: &[Prompt]) -> Result<Suffix> {
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
    let is_tokenised = |prompt: &Prompt| matches!(prompt, Prompt::Tokens(_));
    match mode {
        SuffixMode::Append => Ok(Suffix::Append(suffix)),
        SuffixMode::Fim if !prompts.iter().any(is_tokenised) => Ok(Suffix::FillInMiddle(suffix)),
        SuffixMode::Fim => Err(unsupported(
            "suffix: a prompt given as token ids cannot be put around a middle",
        )),
        SuffixMode::Reject => Err(unsupported("suffix is not supported: suffixMode is reject")),
    }
}

fn unsupported(message: &str) -> Error {
    fault(RequestFault::UnsupportedParameter, "suffix", message)
}
