//! `n` and `best_of` (specification 8): how many choices are returned and how many candidates are
//! generated for them.

use super::declare::fields;
use super::reader::{Fields, out_of_range};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::{RequestFault, Result};

fields! {
    CandidateFields {
        /// Choices returned per prompt.
        n: Option<u32>,
        /// Candidates generated per prompt; the `n` best are returned.
        best_of: Option<u32>,
    }
}

/// Reads `(n, best_of)`. In a stream they must be equal, because it returns candidates before they can
/// be ranked.
pub(in crate::api) fn read(
    fields: &Fields,
    switches: &Switches,
    stream: bool,
) -> Result<(usize, usize)> {
    let n = fields.integer("n", 1..=switches.max_n.into())?.unwrap_or(1);
    // A `best_of` that defaults to `n` is not limited by `maxBestOf`.
    let best_of = fields.integer("best_of", 0..=switches.max_best_of.into())?;
    let best_of = best_of.unwrap_or(n);
    if best_of < n {
        let bounds = format!("at least n = {n}");
        return Err(out_of_range("best_of", &bounds, best_of));
    }
    if stream && best_of > n {
        return Err(fault(
            RequestFault::ConflictingParameters,
            "best_of",
            format!("best_of {best_of} cannot be streamed: it is greater than n = {n}"),
        ));
    }
    // Both are bounded by switches of 32 bits.
    Ok((n as usize, best_of as usize))
}
