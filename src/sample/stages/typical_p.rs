//! Stage 8b, second part: keep the locally typical candidates, whose surprise is close to the expected one.

use crate::sample::candidates::{Candidates, sort_more};

/// Keeps the candidates whose surprise is closest to the entropy, until they have `typical_p` of the probability mass.
/// 1 is off; 0 keeps one candidate.
pub(super) fn apply(candidates: &mut Candidates, typical_p: f32) {
    if typical_p >= 1.0 {
        return;
    }
    let total = candidates.total();
    let p: Vec<f32> = (0..candidates.len())
        .map(|rank| candidates.weight(rank) / total)
        .collect();
    let surprise = |p: f32| -p.max(f32::MIN_POSITIVE).ln();
    // In f64, because a vocabulary has many small terms.
    let entropy: f64 = p
        .iter()
        .map(|&p| f64::from(p) * f64::from(surprise(p)))
        .sum();
    // The bits of a distance, which is not negative, order like it. Lower ranks are first on ties.
    let key = |(rank, &p): (usize, &f32)| {
        let distance = (surprise(p) - entropy as f32).abs();
        u64::from(distance.to_bits()) << 32 | rank as u64
    };
    let mut keys: Vec<u64> = p.iter().enumerate().map(key).collect();
    let rank = |key: u64| key as u32 as usize;
    let mut before = 0.0f64;
    let (mut kept, mut sorted) = (0, sort_more(&mut keys, 0));
    while kept < keys.len() && before < f64::from(typical_p) {
        if kept == sorted {
            sorted = sort_more(&mut keys, sorted);
        }
        before += f64::from(p[rank(keys[kept])]);
        kept += 1;
    }
    let mut ranks: Vec<usize> = keys[..kept.max(1)].iter().map(|&key| rank(key)).collect();
    ranks.sort_unstable();
    candidates.keep_ranks(&ranks);
}

#[cfg(test)]
mod tests {
    use crate::sample::{Sampler, SamplingParams};

    fn survivors(params: &SamplingParams, logits: &[f32]) -> Vec<(u32, f32)> {
        let mut logits = logits.to_vec();
        let survivors = Sampler::new(params, 0, &[]).survivors(&mut logits, None);
        survivors.unwrap()
    }

    fn ids(typical_p: f32, logits: &[f32]) -> Vec<u32> {
        let params = SamplingParams {
            typical_p,
            ..SamplingParams::default()
        };
        let survivors = survivors(&params, logits);
        survivors.into_iter().map(|(id, _)| id).collect()
    }

    /// The entropy of the logits of specification 16 is 1.3130; the distances to it are .5347, .0347, .4653, 1.4653,
    /// 2.4653 and 3.4653.
    #[test]
    fn the_closest_to_the_entropy_are_kept() {
        let z = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];
        assert_eq!(ids(0.0, &z), [1]);
        assert_eq!(ids(0.2, &z), [1]);
        assert_eq!(ids(0.3, &z), [1, 2]);
        assert_eq!(ids(0.5, &z), [0, 1, 2]);
        assert_eq!(ids(0.95, &z), [0, 1, 2, 3]);
        assert_eq!(ids(1.0, &z), [0, 1, 2, 3, 4, 5]);
        let params = SamplingParams {
            typical_p: 0.4,
            ..SamplingParams::default()
        };
        let found = survivors(&params, &z);
        for (found, expected) in found.iter().zip([(1, 0.622459), (2, 0.377541)]) {
            assert!(
                found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-5,
                "{found:?}"
            );
        }
    }

    #[test]
    fn it_comes_after_top_k_and_before_top_p() {
        let z = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];
        // Of the first two alone, the entropy is closer to the first.
        let params = SamplingParams {
            top_k: Some(2),
            typical_p: 0.1,
            ..SamplingParams::default()
        };
        assert_eq!(survivors(&params, &z), [(0, 1.0)]);
        // top_p first would keep candidate 0.
        let params = SamplingParams {
            top_p: 0.1,
            typical_p: 0.4,
            ..SamplingParams::default()
        };
        assert_eq!(survivors(&params, &z), [(1, 1.0)]);
    }

    #[test]
    fn ties_and_single_candidates() {
        assert_eq!(ids(0.0, &[1.0]), [0]);
        assert_eq!(ids(0.5, &[1.0; 4]), [0, 1]);
        assert_eq!(ids(0.3, &[0.0, f32::NEG_INFINITY]), [0]);
    }

    #[test]
    fn many_are_kept_in_the_order_of_all_distances() {
        let z: Vec<f32> = (0..3000).map(|i| (i * i % 101) as f32 / 50.0).collect();
        let whole = ids(1.0, &z);
        let total: f64 = z.iter().map(|z| f64::from(*z).exp()).sum();
        let p = |id: u32| f64::from(z[id as usize]).exp() / total;
        let entropy: f64 = whole.iter().map(|&id| -p(id) * p(id).ln()).sum();
        let distance = |id: u32| ((-p(id).ln() - entropy).abs() * 1e5).round();
        for typical_p in [0.01, 0.3, 0.9] {
            let kept = ids(typical_p, &z);
            let farthest = kept.iter().map(|id| distance(*id)).fold(0.0, f64::max);
            let nearer = whole.iter().filter(|id| distance(**id) < farthest);
            assert!(nearer.clone().all(|id| kept.contains(id)), "{typical_p}");
            let mass: f64 = kept.iter().map(|&id| p(id)).sum();
            assert!(mass >= f64::from(typical_p) && mass < f64::from(typical_p) + 1e-3);
        }
    }
}
