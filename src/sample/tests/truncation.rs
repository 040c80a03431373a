//! Stages 8b and 9 on rows of real size.

use super::params;
use super::reference::Reference;
use crate::sample::{Sampler, SamplingParams};
use proptest::prelude::*;

prop_compose! {
    fn any_params()(
        temperature in 0.05f32..2.0,
        top_p in prop_oneof![Just(1.0f32), 0.0f32..1.0],
        top_k in prop::option::of(1usize..600),
        min_p in prop_oneof![Just(0.0f32), 0.0f32..1.0],
        seed: i64,
    ) -> SamplingParams {
        SamplingParams { temperature, top_p, top_k, min_p, seed, ..params() }
    }
}

/// Few distinct values, so that ties are common. Some are forbidden, and at least one is finite.
fn any_logits() -> impl Strategy<Value = Vec<f32>> {
    let one = prop_oneof![8 => (-40i8..40).prop_map(|z| f32::from(z) / 8.0), 1 => Just(f32::NEG_INFINITY)];
    prop::collection::vec(one, 1..1500).prop_map(|mut z| {
        z[0] = 0.5;
        z
    })
}

proptest! {
    #[test]
    fn survivors_are_the_reference(z in any_logits(), params in any_params()) {
        let expected = Reference::new(&params, 0, &[]).survivors(&z, None);
        if expected.margin > 1e-5 {
            let found = Sampler::new(&params, 0, &[]).survivors(&mut z.clone(), None).unwrap();
            prop_assert_eq!(found.len(), expected.candidates.len());
            for (found, expected) in found.iter().zip(&expected.candidates) {
                prop_assert_eq!(found.0, expected.0);
                prop_assert!((f64::from(found.1) - expected.1).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn mass_is_conserved_and_order_holds(z in any_logits(), params in any_params()) {
        let found = Sampler::new(&params, 0, &[]).survivors(&mut z.clone(), None).unwrap();
        let mass: f64 = found.iter().map(|s| f64::from(s.1)).sum();
        prop_assert!((mass - 1.0).abs() < 1e-5, "{}", mass);
        for pair in found.windows(2) {
            let (a, b) = (z[pair[0].0 as usize], z[pair[1].0 as usize]);
            prop_assert!(a > b || (a == b && pair[0].0 < pair[1].0));
            prop_assert!(pair[0].1 >= pair[1].1);
        }
    }

    #[test]
    fn the_token_is_a_survivor_whatever_the_scratch_held(
        z in any_logits(), params in any_params(), candidate in 0u32..8,
    ) {
        let mut fresh = Sampler::new(&params, candidate, &[]);
        fresh.push(0);
        let token = fresh.sample(&mut z.clone(), None, None).unwrap();
        let mut used = Sampler::new(&params, candidate, &[]);
        used.sample(&mut [1.0, 2.0, 3.0], None, None).unwrap();
        let survivors = used.survivors(&mut z.clone(), None).unwrap();
        prop_assert!(survivors.iter().any(|s| s.0 == token.id));
        prop_assert_eq!(used.sample(&mut z.clone(), None, None).unwrap(), token);
    }
}

#[test]
fn min_p_one_keeps_equals() {
    let params = SamplingParams {
        min_p: 1.0,
        ..params()
    };
    let survivors = Sampler::new(&params, 0, &[]).survivors(&mut [1.0, 2.0, 2.0], None);
    assert_eq!(survivors, Ok(vec![(1, 0.5), (2, 0.5)]));
}

#[test]
fn thresholds_met_exactly() {
    // Powers of two: exp(0) is exact, and so are the sums.
    let survivors = |top_p, min_p| {
        let params = SamplingParams {
            top_p,
            min_p,
            ..params()
        };
        let mut sampler = Sampler::new(&params, 0, &[]);
        sampler.survivors(&mut [0.0; 4], None).unwrap().len()
    };
    assert_eq!(
        survivors(0.5, 0.0),
        2,
        "mass before the third is not below top_p"
    );
    assert_eq!(survivors(0.500_001, 0.0), 3);
    assert_eq!(
        survivors(1.0, 1.0),
        4,
        "min_p keeps candidates at its threshold"
    );
}

#[test]
fn a_flat_row_of_150k_draws_every_region() {
    // The cumulative sum must not stall in the tail: each tenth of the ids gets its tenth.
    let mut sampler = Sampler::new(&params(), 0, &[]);
    let mut logits = vec![0.0; 150_000];
    let mut tenths = [0; 10];
    for _ in 0..200 {
        let token = sampler.sample(&mut logits, None, None).unwrap();
        tenths[token.id as usize / 15_000] += 1;
    }
    assert!(tenths.iter().all(|&n| (5..=40).contains(&n)), "{tenths:?}");
}

#[test]
fn draws_follow_the_distribution() {
    let params = SamplingParams {
        top_p: 0.8,
        seed: 11,
        ..params()
    };
    let mut sampler = Sampler::new(&params, 0, &[]);
    let z = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];
    let mut counts = [0usize; 6];
    for _ in 0..20_000 {
        counts[sampler.sample(&mut z.clone(), None, None).unwrap().id as usize] += 1;
    }
    for (count, p) in counts
        .into_iter()
        .zip([0.506480, 0.307196, 0.186324, 0.0, 0.0, 0.0])
    {
        assert!((count as f64 / 20_000.0 - p).abs() < 0.015, "{counts:?}");
    }
}
