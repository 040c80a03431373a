//! Stage 8b, first part: keep exactly the first k candidates, ties cut by id.

use crate::sample::candidates::Candidates;

/// `None`, or at least the number of candidates, is off.
pub(super) fn apply(candidates: &mut Candidates, top_k: Option<usize>) {
    if let Some(k) = top_k
        && k < candidates.len()
    {
        candidates.keep_first(k);
    }
}
