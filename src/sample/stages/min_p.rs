//! Stage 8b, fourth part: keep candidates at least `min_p` times as likely as the first.

use crate::sample::candidates::Candidates;

/// 0 is off; 1 keeps only candidates as likely as the first.
pub(super) fn apply(candidates: &mut Candidates, min_p: f32) {
    if min_p <= 0.0 {
        return;
    }
    let threshold = min_p * candidates.weight(0);
    let mut kept = 1;
    while kept < candidates.len() && candidates.weight(kept) >= threshold {
        kept += 1;
    }
    candidates.keep_first(kept);
}
