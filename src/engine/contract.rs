//! Holds the model to its contract. Knows no sequence.

use crate::{Error, Result};

/// An internal error unless the model returned as many as were asked for.
pub(super) fn expect(what: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Internal(format!(
        "the model returned {found} {what} instead of {wanted}"
    )))
}
