//! Stage 8b, third part: keep the nucleus. A candidate belongs to it if the candidates before it have
//! less than `top_p` of the remaining probability mass.

use crate::sample::candidates::Candidates;
use crate::sample::running_sum::RunningSum;

/// 1 is off; 0 keeps the first candidate alone.
pub(super) fn apply(candidates: &mut Candidates, top_p: f32) {
    if top_p >= 1.0 {
        return;
    }
    let mass = top_p * candidates.total();
    let mut before = RunningSum::default();
    let mut kept = 0;
    while kept < candidates.len() && before.value() < mass {
        before.add(candidates.weight(kept));
        kept += 1;
    }
    candidates.keep_first(kept);
}
