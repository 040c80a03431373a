//! Tokens that a completion must not have (specification 4.3): `allowed_token_ids` and `bad_words`. They become rules for
//! the engine in `run`, which knows the tokenizer.

use super::declare::fields;
use super::reader::{Fields, check_ids, check_text_bytes, invalid_value};
use crate::Result;

fields! {
    RestrictionFields {
        /// The only tokens that may be generated.
        allowed_token_ids: Option<Vec<u32>>,
        /// Texts that are not generated.
        bad_words: Option<Vec<String>>,
    }
}

const MAX_BAD_WORDS: usize = 1024;

/// The fields of this group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct Restrictions {
    /// At least one; `None`: all.
    pub allowed_token_ids: Option<Vec<u32>>,
    /// None of them empty.
    pub bad_words: Vec<String>,
}

impl Restrictions {
    /// Checks what needs the model.
    ///
    /// # Errors
    /// `out_of_range` for an id that is not below `vocab_size`.
    pub(in crate::api) fn check_vocabulary(&self, vocab_size: usize) -> Result<()> {
        let ids = self.allowed_token_ids.as_deref().unwrap_or_default();
        check_ids("allowed_token_ids", ids, vocab_size)
    }
}

pub(in crate::api) fn read(fields: &Fields) -> Result<Restrictions> {
    let name = "allowed_token_ids";
    let allowed_token_ids = fields.token_ids(name)?;
    if allowed_token_ids.as_deref() == Some(&[]) {
        return Err(invalid_value(
            name,
            "an empty list would forbid every token",
        ));
    }
    let bad_words = fields
        .texts("bad_words", MAX_BAD_WORDS)?
        .unwrap_or_default();
    check_text_bytes("bad_words", bad_words.iter().map(String::as_str))?;
    Ok(Restrictions {
        allowed_token_ids,
        bad_words,
    })
}
