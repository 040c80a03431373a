//! How a prompt becomes tokens (specification 4.2 and 11): special tokens that are added, and tokens that are cut.

use super::declare::fields;
use super::reader::{Fields, out_of_range};
use crate::Result;

fields! {
    PromptTokenFields {
        /// Whether the tokenizer adds its start-of-text token to a prompt that is text.
        add_special_tokens: Option<bool>,
        /// Keep this many tokens of the prompt's end; -1: as many as the context holds.
        truncate_prompt_tokens: Option<i64>,
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

/// `add_special` is the default of `add_special_tokens`.
pub(in crate::api) fn read(fields: &Fields, add_special: bool) -> Result<PromptTokens> {
    let name = "truncate_prompt_tokens";
    let kept = match fields.integer(name, -1..=i128::MAX)? {
        None => KeptTokens::All,
        Some(-1) => KeptTokens::Fitting,
        Some(0) => return Err(out_of_range(name, "-1 or at least 1", 0)),
        Some(tokens) => KeptTokens::Last(usize::try_from(tokens).unwrap_or(usize::MAX)),
    };
    Ok(PromptTokens {
        add_special: fields.boolean("add_special_tokens")?.unwrap_or(add_special),
        kept,
    })
}
