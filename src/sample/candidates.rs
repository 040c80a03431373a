//! The tokens that can still be drawn, in the order of specification 5.3, sorted only as far as they are
//! read.

use std::collections::BinaryHeap;

use super::running_sum::RunningSum;
use super::temperature::Weigher;

/// Length of the first part that is sorted; each further part is eight times longer.
const FIRST_SORTED: usize = 128;

/// Candidates ordered by p descending, then id ascending.
///
/// p increases strictly with the logit, so the order is that of the logits: it is exact, unaffected by the
/// rounding of `exp`. Tokens whose weight underflows f32 are left out: they are never drawn.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// [`key`] of each candidate; ascending in `..sorted`, all others are larger.
    keys: Vec<u64>,
    sorted: usize,
    /// Weights of the candidates in `..weights.len()`, at most `sorted` of them.
    weights: Vec<f32>,
    weigher: Option<Weigher>,
    /// Sum of the weights of all candidates.
    total: f32,
}

impl Candidates {
    /// Replaces the candidates by those of a row of logits. The memory stays allocated.
    pub(super) fn reset(&mut self, logits: &[f32], weigher: Weigher) {
        self.keys.clear();
        let lowest = weigher.lowest_in_reach();
        let in_reach = (0u32..).zip(logits).filter(|&(_, &z)| z >= lowest);
        self.keys.extend(in_reach.map(|(id, &z)| key(z, id)));
        self.sorted = 0;
        self.weights.clear();
        self.weigher = Some(weigher);
        self.total = weigher.total(logits);
    }

    /// Number of candidates, at least one.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The id at `rank`, 0 being the most likely.
    pub(super) fn id(&mut self, rank: usize) -> u32 {
        self.sort(rank + 1);
        self.keys[rank] as u32
    }

    /// The weight at `rank`; never increases with the rank.
    pub(super) fn weight(&mut self, rank: usize) -> f32 {
        self.sort(rank + 1);
        if let Some(weigher) = self.weigher {
            while self.weights.len() <= rank {
                let weight = weigher.weight(logit(self.keys[self.weights.len()]));
                // `exp` rounds; keep the weights in order.
                let bound = self.weights.last().copied().unwrap_or(1.0);
                self.weights.push(weight.min(bound));
            }
        }
        self.weights[rank]
    }

    /// Sum of the weights of all candidates, added in the order of ids before the first truncation and
    /// in the order of ranks after it.
    pub(super) fn total(&self) -> f32 {
        self.total
    }

    /// Keeps only the first `len` candidates, at least one.
    pub(super) fn keep_first(&mut self, len: usize) {
        let len = len.clamp(1, self.len());
        let mut sum = RunningSum::default();
        self.sort_exactly(len);
        for rank in 0..len {
            sum.add(self.weight(rank));
        }
        self.total = sum.value();
        self.keys.truncate(len);
        self.weights.truncate(len);
        self.sorted = len;
    }

    /// Keeps only the candidates at these ranks, which ascend; at least one.
    pub(super) fn keep_ranks(&mut self, ranks: &[usize]) {
        let mut sum = RunningSum::default();
        for (to, &rank) in ranks.iter().enumerate() {
            let weight = self.weight(rank);
            sum.add(weight);
            // A rank is at least as large as its place, so nothing is overwritten before it is read.
            self.keys[to] = self.keys[rank];
            self.weights[to] = weight;
        }
        self.total = sum.value();
        self.keys.truncate(ranks.len());
        self.weights.truncate(ranks.len());
        self.sorted = ranks.len();
    }

    /// Sorts at least the first `len`, usually more.
    fn sort(&mut self, len: usize) {
        while self.sorted < len {
            self.sorted = sort_more(&mut self.keys, self.sorted);
        }
    }

    fn sort_exactly(&mut self, len: usize) {
        self.sorted = sort_to(&mut self.keys, self.sorted, len);
    }
}

/// Sorts the next part of `keys`, whose first `sorted` are in order and the smallest; returns how many are in order then.
pub(super) fn sort_more(keys: &mut [u64], sorted: usize) -> usize {
    sort_to(keys, sorted, (sorted * 8).max(FIRST_SORTED))
}

fn sort_to(keys: &mut [u64], sorted: usize, len: usize) -> usize {
    let len = len.min(keys.len());
    if len <= sorted {
        return sorted;
    }
    let rest = &mut keys[sorted..];
    let wanted = len - sorted;
    if wanted < rest.len() {
        rest.select_nth_unstable(wanted);
    }
    rest[..wanted].sort_unstable();
    len
}

/// The `n` best ids of a row of logits without NaN and their logits, best first, lower ids first on ties.
pub fn best_tokens(logits: &[f32], n: usize) -> impl Iterator<Item = (u32, f32)> {
    let (first, rest) = logits.split_at(n.min(logits.len()));
    let keys = (0u32..).zip(first).map(|(id, &z)| key(z, id));
    // A heap with the worst of the best so far on top.
    let mut best: BinaryHeap<u64> = keys.collect();
    for (id, &z) in (first.len() as u32..).zip(rest) {
        let Some(mut worst) = best.peek_mut() else {
            break;
        };
        // The lower id is kept of two with equal logits.
        if z > logit(*worst) {
            *worst = key(z, id);
        }
    }
    let best = best.into_sorted_vec().into_iter();
    best.map(|key| (key as u32, logit(key)))
}

/// A number that orders by logit descending, then by id ascending.
pub(super) fn key(z: f32, id: u32) -> u64 {
    let bits = (z + 0.0).to_bits(); // -0 becomes +0: they are equal
    let ascending = if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    };
    u64::from(!ascending) << 32 | u64::from(id)
}

/// The logit in a [`key`].
pub(super) fn logit(key: u64) -> f32 {
    let ascending = !((key >> 32) as u32);
    let bits = if ascending >> 31 == 1 {
        ascending ^ 1 << 31
    } else {
        !ascending
    };
    f32::from_bits(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_holds_its_logit(z in proptest::num::f32::NORMAL | proptest::num::f32::ZERO, id: u32) {
            prop_assert_eq!(logit(key(z, id)), z);
            prop_assert_eq!(key(z, id) as u32, id);
        }

        #[test]
        fn lazy_order_is_the_full_order(
            z in prop::collection::vec(-3i8..3, 1..2000),
            looks in prop::collection::vec(0usize..2000, 1..6),
        ) {
            let logits: Vec<f32> = z.iter().map(|&z| f32::from(z)).collect();
            let mut expected: Vec<u32> = (0..logits.len() as u32).collect();
            expected.sort_by(|&a, &b| {
                logits[b as usize].partial_cmp(&logits[a as usize]).unwrap().then(a.cmp(&b))
            });
            let z_max = logits[expected[0] as usize];
            let mut candidates = Candidates::default();
            candidates.reset(&logits, Weigher { z_max, temperature: 1.0 });
            for look in looks {
                let rank = look % logits.len();
                prop_assert_eq!(candidates.id(rank), expected[rank]);
            }
        }
    }

    #[test]
    fn the_best_are_sorted_and_lower_ids_are_first_on_ties() {
        // Few distinct values, so that many are equal.
        let logits: Vec<f32> = (0..517).map(|i| (i * i % 13) as f32 - 6.0).collect();
        let mut order: Vec<u32> = (0..517).collect();
        order.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        for n in [0, 1, 20, 516, 517, 600] {
            let expected = order.iter().take(n).map(|&id| (id, logits[id as usize]));
            assert!(
                best_tokens(&logits, n).eq(expected),
                "{n} of {}",
                logits.len()
            );
        }
        let ids: Vec<u32> = best_tokens(&[-0.0, 0.0], 2).map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 1]);
    }

    #[test]
    fn signed_zeros_are_equal() {
        let mut candidates = Candidates::default();
        candidates.reset(
            &[-0.0, 0.0],
            Weigher {
                z_max: 0.0,
                temperature: 1.0,
            },
        );
        assert_eq!([candidates.id(0), candidates.id(1)], [0, 1]);
    }
}
