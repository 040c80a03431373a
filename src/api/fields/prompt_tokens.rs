//! How a prompt becomes tokens (specification 4.2 and 11): special tokens that are added, and tokens that are cut.

use super::declare::{Field, Or, fields};
use super::kinds::{Flag, Integer, flag, integer};
use super::reader::{Fields, out_of_range};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    PromptTokenFields {
        /// Whether the tokenizer adds its start-of-text token to a prompt that is text.
        add_special_tokens: Or<Flag> = flag().or(true).of("vLLM"),
        /// Keep this many tokens of the prompt's end; -1: as many as the context holds.
        truncate_prompt_tokens: Field<Integer> = integer(-1).range("not 0").of("vLLM"),
    }
}

/// The fields of this group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct PromptTokens {
    /// Whether special tokens are added to text.
    pub add_special: bool,
    pub kept: KeptTokens,
}

/// How many tokens of a prompt are kept, counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum KeptTokens {
    All,
    /// What the context holds beside the completion.
    Fitting,
    /// At most this many, at least one.
    Last(usize),
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<PromptTokens> {
    let field = PromptTokenFields::truncate_prompt_tokens;
    let kept = match field.read(fields, switches)? {
        None => KeptTokens::All,
        Some(-1) => KeptTokens::Fitting,
        Some(0) => return Err(out_of_range(field.name, "-1 or at least 1", 0)),
        Some(tokens) => KeptTokens::Last(usize::try_from(tokens).unwrap_or(usize::MAX)),
    };
    Ok(PromptTokens {
        add_special: PromptTokenFields::add_special_tokens.read(fields, switches)?,
        kept,
    })
}
