//! Tokens that a completion must not have (specification 4.3): `allowed_token_ids` and `bad_words`. They become rules for
//! the engine in `run`, which knows the tokenizer.

use super::declare::{Field, fields};
use super::kinds::{Strings, TokenIds, strings, token_ids};
use super::reader::{Fields, check_ids, invalid_value};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    RestrictionFields {
        /// The only tokens that may be generated; end of text only if it is listed.
        allowed_token_ids: Field<TokenIds> =
            token_ids(usize::MAX).default_is("all").range("not empty").of("vLLM"),
        /// Strings that are not generated, as the tokenizer writes them.
        bad_words: Field<Strings> = strings().at_most(1024).short().of("vLLM"),
    }
}

/// The fields of this group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct Restrictions {
    /// The allowed ids, at least one; `None`: all are allowed.
    pub allowed_token_ids: Option<Vec<u32>>,
    /// Words that may not be written; none is empty.
    pub bad_words: Vec<String>,
}

impl Restrictions {
    /// Checks what needs the model.
    ///
    /// # Errors
    /// `out_of_range` for an id that is not below `vocab_size`.
    pub(in crate::api) fn check_vocabulary(&self, vocab_size: usize) -> Result<()> {
        let ids = self.allowed_token_ids.as_deref().unwrap_or_default();
        check_ids(RestrictionFields::allowed_token_ids.name, ids, vocab_size)
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<Restrictions> {
    let field = RestrictionFields::allowed_token_ids;
    let allowed_token_ids = field.read(fields, switches)?;
    if allowed_token_ids.as_deref() == Some(&[]) {
        let reason = "an empty list would forbid every token";
        return Err(invalid_value(field.name, reason));
    }
    let bad_words = RestrictionFields::bad_words.read(fields, switches)?;
    Ok(Restrictions {
        allowed_token_ids,
        bad_words: bad_words.unwrap_or_default(),
    })
}
