//! `n` and `best_of` (specification 8): how many choices are returned and how many candidates are
//! generated for them.

use super::declare::{Field, Or, fields};
use super::kinds::{Count, count};
use super::reader::{Fields, out_of_range};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::{RequestFault, Result};

fields! {
    CandidateFields {
        /// Choices per prompt.
        n: Or<Count> = count(1).up_to("maxN", |it| it.max_n as usize).or(1),
        /// Candidates per prompt; the `n` best are returned.
        best_of: Field<Count> = count(0)
            .up_to("maxBestOf", |it| it.max_best_of as usize)
            .default_is("`n`")
            .range("at least `n`"),
    }
}

/// Reads `(n, best_of)`. In a stream they must be equal, because it returns candidates before they can
/// be ranked.
pub(in crate::api) fn read(
    fields: &Fields,
    switches: &Switches,
    stream: bool,
) -> Result<(usize, usize)> {
    let n = CandidateFields::n.read(fields, switches)?;
    // A `best_of` that defaults to `n` is not limited by `maxBestOf`.
    let best_of = CandidateFields::best_of
        .read(fields, switches)?
        .unwrap_or(n);
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
    Ok((n, best_of))
}
