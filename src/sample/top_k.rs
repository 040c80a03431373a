//! Stage 8b, first part: keep exactly the first k candidates, ties cut by id.

use super::candidates::Candidates;

/// `None`, or more than there are, is off.
pub(super) fn apply(candidates: &mut Candidates, top_k: Option<usize>) {
    if let Some(k) = top_k
        && k < candidates.len()
    {
        candidates.keep_first(k);
    }
}
