//! Specification 5.4: one uniform number selects one of the survivors.

use super::candidates::Candidates;
use super::running_sum::RunningSum;

/// Rank of the first candidate whose cumulative probability exceeds `u`, for `u` in [0, 1).
pub(super) fn draw(candidates: &mut Candidates, u: f32) -> usize {
    let target = u * candidates.total();
    let mut cumulative = RunningSum::default();
    let (mut reached, mut last) = (0.0, 0);
    for rank in 0..candidates.len() {
        cumulative.add(candidates.weight(rank));
        if cumulative.value() > target {
            return rank;
        }
        if cumulative.value() > reached {
            (reached, last) = (cumulative.value(), rank);
        }
    }
    // The total was summed in another order and may exceed this sum by a few ulp. A candidate whose
    // weight is too small to increase the sum must not be drawn.
    last
}

#[cfg(test)]
mod tests {
    use super::super::temperature::Weigher;
    use super::*;

    #[test]
    fn the_sum_must_exceed_u() {
        let weigher = Weigher {
            z_max: 0.0,
            temperature: 1.0,
        };
        let mut candidates = Candidates::default();
        candidates.reset(&[0.0; 4], weigher);
        for (u, rank) in [(0.0, 0), (0.249, 0), (0.25, 1), (0.5, 2), (0.75, 3)] {
            assert_eq!(draw(&mut candidates, u), rank, "u = {u}");
        }
    }

    #[test]
    fn the_largest_u_does_not_draw_candidates_without_weight() {
        let row = [0.0, -1.0, -80.0, -86.0];
        let weigher = Weigher {
            z_max: 0.0,
            temperature: 1.0,
        };
        let mut candidates = Candidates::default();
        for u in [0.999_999_94, 1.0] {
            candidates.reset(&row, weigher);
            assert_eq!(candidates.len(), 4);
            assert_eq!(draw(&mut candidates, u), 1);
        }
    }
}
