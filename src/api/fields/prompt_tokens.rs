//! From a prompt to tokens (specification 4.2 and 11): special tokens that are added, and tokens that are cut.

use super::declare::{Field, Or, fields};
use super::kinds::{Flag, Integer, Word, flag, integer, word};
use super::reader::{Fields, out_of_range};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    PromptTokenFields {
        /// Whether the tokenizer adds its start-of-text token to a prompt that is text.
        add_special_tokens: Or<Flag> = flag().or(true).of("vLLM"),
    }
}

fields! {
    TruncationFields {
        /// Keep this many tokens of a prompt; -1: as many as the context holds.
        truncate_prompt_tokens: Field<Integer> = integer(-1).range("not 0").of("vLLM"),
        /// The side that `truncate_prompt_tokens` cuts: `left` keeps the prompt's end, `right` its beginning.
        truncation_side: Field<Word<TruncationSide>> =
            word(&[("left", TruncationSide::Left), ("right", TruncationSide::Right)])
                .default_is("`left`; of embeddings `right`")
                .of("vLLM"),
    }
}

/// The fields of these groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct PromptTokens {
    /// Whether special tokens are added to text.
    pub add_special: bool,
    pub kept: KeptTokens,
}

/// The side where tokens are cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum TruncationSide {
    /// The beginning.
    Left,
    /// The end.
    Right,
}

/// The number of tokens of a prompt that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum KeptTokens {
    All,
    /// The number of tokens that the context holds beside the completion.
    Fitting(TruncationSide),
    /// The maximum number of tokens that are kept, at least one.
    AtMost(usize, TruncationSide),
}

impl KeptTokens {
    /// The side where tokens are cut off.
    pub(in crate::api) fn side(self) -> TruncationSide {
        match self {
            KeptTokens::All => TruncationSide::Left,
            KeptTokens::Fitting(side) | KeptTokens::AtMost(_, side) => side,
        }
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<PromptTokens> {
    Ok(PromptTokens {
        add_special: PromptTokenFields::add_special_tokens.read(fields, switches)?,
        kept: read_kept(fields, switches, TruncationSide::Left)?,
    })
}

/// Reads [`TruncationFields`]. `default_side` holds without `truncation_side`.
pub(in crate::api) fn read_kept(
    fields: &Fields,
    switches: &Switches,
    default_side: TruncationSide,
) -> Result<KeptTokens> {
    let side = TruncationFields::truncation_side.read(fields, switches)?;
    let side = side.unwrap_or(default_side);
    let field = TruncationFields::truncate_prompt_tokens;
    Ok(match field.read(fields, switches)? {
        None => KeptTokens::All,
        Some(-1) => KeptTokens::Fitting(side),
        Some(0) => return Err(out_of_range(field.name, "-1 or at least 1", 0)),
        Some(tokens) => KeptTokens::AtMost(usize::try_from(tokens).unwrap_or(usize::MAX), side),
    })
}
