//! Section 5.4: one uniform number chooses among the survivors.

use super::candidates::Candidates;
use super::running_sum::RunningSum;

/// The first candidate whose cumulative probability exceeds `u`, for `u` in [0, 1).
pub(super) fn draw(candidates: &mut Candidates, u: f32) -> u32 {
    let target = u * candidates.total();
    let mut cumulative = RunningSum::default();
    for rank in 0..candidates.len() {
        cumulative.add(candidates.weight(rank));
        if cumulative.value() > target {
            return candidates.id(rank);
        }
    }
    // The total was summed in another order and may exceed this sum by some ulp.
    candidates.id(candidates.len() - 1)
}
