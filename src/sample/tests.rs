//! The sampler vectors of API.md section 16 that need no stage before greedy, and properties.

use super::draw::draw;
use super::{Sampler, SamplingParams};
use crate::Error;
use proptest::prelude::*;

const Z: [f32; 6] = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];

fn params() -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        top_p: 1.0,
        top_k: None,
        min_p: 0.0,
        seed: 0,
    }
}

fn check(z: &[f32], params: SamplingParams, expected: &[(u32, f32)]) {
    let found = Sampler::new(&params).survivors(&mut z.to_vec()).unwrap();
    assert_eq!(
        found.iter().map(|s| s.0).collect::<Vec<_>>(),
        expected.iter().map(|s| s.0).collect::<Vec<_>>()
    );
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found.1 - expected.1).abs() < 1e-5,
            "{found:?} is not {expected:?}"
        );
    }
}

#[test]
fn v4_top_p_zero() {
    check(
        &Z,
        SamplingParams {
            top_p: 0.0,
            ..params()
        },
        &[(0, 1.0)],
    );
}

#[test]
fn v5_top_p_and_draw() {
    let mut sampler = Sampler::new(&SamplingParams {
        top_p: 0.8,
        ..params()
    });
    let expected = [(0, 0.506480), (1, 0.307196), (2, 0.186324)];
    check(&Z, sampler.params.clone(), &expected);
    for (u, id) in [(0.0, 0), (0.50, 0), (0.51, 1), (0.82, 2), (0.999_999_94, 2)] {
        sampler.survivors(&mut Z.to_vec()).unwrap();
        assert_eq!(draw(&mut sampler.candidates, u), id, "u = {u}");
    }
}

#[test]
fn v6_top_k_renormalises_before_top_p() {
    check(
        &Z,
        SamplingParams {
            top_k: Some(2),
            top_p: 0.62,
            ..params()
        },
        &[(0, 1.0)],
    );
}

#[test]
fn v7_top_p_before_min_p() {
    let params = SamplingParams {
        top_p: 0.6,
        min_p: 0.5,
        ..params()
    };
    check(&Z, params, &[(0, 0.622459), (1, 0.377541)]);
}

#[test]
fn v8_temperature_first() {
    let params = SamplingParams {
        temperature: 2.0,
        top_p: 0.73,
        ..params()
    };
    check(&Z, params, &[(0, 0.419229), (1, 0.326496), (2, 0.254275)]);
}

#[test]
fn v9_min_p_one() {
    check(
        &Z,
        SamplingParams {
            min_p: 1.0,
            ..params()
        },
        &[(0, 1.0)],
    );
}

#[test]
fn v11_v12_greedy() {
    let greedy = SamplingParams {
        temperature: 0.0,
        ..params()
    };
    let mut biased = Z;
    biased[5] += 100.0;
    assert_eq!(Sampler::new(&greedy).sample(&mut biased, 0), Ok(5));
    assert_eq!(
        Sampler::new(&greedy).sample(&mut [1.0, 1.0, 1.0, 0.0], 0),
        Ok(0)
    );
    let nearly = SamplingParams {
        temperature: 9.9e-6,
        ..params()
    };
    assert_eq!(Sampler::new(&nearly).sample(&mut biased, 0), Ok(5));
}

#[test]
fn v12_top_k_cuts_ties_by_id() {
    let params = SamplingParams {
        top_k: Some(2),
        ..params()
    };
    check(&[1.0, 1.0, 1.0, 0.0], params, &[(0, 0.5), (1, 0.5)]);
}

#[test]
fn min_p_one_keeps_equals() {
    check(
        &[1.0, 2.0, 2.0],
        SamplingParams {
            min_p: 1.0,
            ..params()
        },
        &[(1, 0.5), (2, 0.5)],
    );
}

#[test]
fn invalid_logits_are_an_error_in_every_mode() {
    for temperature in [0.0, 1.0] {
        let mut sampler = Sampler::new(&SamplingParams {
            temperature,
            ..params()
        });
        for bad in [
            [0.0, f32::NAN],
            [0.0, f32::INFINITY],
            [f32::NEG_INFINITY; 2],
        ] {
            let error = Err(Error::InvalidLogits { position: 3 });
            assert_eq!(sampler.sample(&mut bad.clone(), 3), error);
        }
    }
}

#[test]
fn a_flat_row_of_150k_draws_every_region() {
    // The cumulative sum must not stall in the tail: each tenth of the ids gets its tenth.
    let mut sampler = Sampler::new(&params());
    let mut logits = vec![0.0; 150_000];
    let mut tenths = [0; 10];
    for position in 0..200 {
        tenths[sampler.sample(&mut logits, position).unwrap() as usize / 15_000] += 1;
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
    let mut sampler = Sampler::new(&params);
    let mut counts = [0usize; 6];
    for position in 0..20_000 {
        counts[sampler.sample(&mut Z.to_vec(), position).unwrap() as usize] += 1;
    }
    for (count, p) in counts
        .into_iter()
        .zip([0.506480, 0.307196, 0.186324, 0.0, 0.0, 0.0])
    {
        assert!((count as f64 / 20_000.0 - p).abs() < 0.015, "{counts:?}");
    }
}

prop_compose! {
    fn any_params()(
        temperature in 0.05f32..2.0,
        top_p in prop_oneof![Just(1.0f32), 0.0f32..1.0],
        top_k in prop::option::of(1usize..600),
        min_p in prop_oneof![Just(0.0f32), 0.0f32..1.0],
        seed: i64,
        candidate in 0u32..8,
    ) -> SamplingParams {
        SamplingParams { temperature, top_p, top_k, min_p, seed, candidate }
    }
}

/// Small integers, so that ties abound, some forbidden; at least one is finite.
fn any_logits() -> impl Strategy<Value = Vec<f32>> {
    let one = prop_oneof![8 => (-40i8..40).prop_map(|z| f32::from(z) / 8.0), 1 => Just(f32::NEG_INFINITY)];
    prop::collection::vec(one, 1..1500).prop_map(|mut z| {
        z[0] = 0.5;
        z
    })
}

/// The rules of section 5.3 word for word, in f64 with a full sort.
fn reference(z: &[f32], params: &SamplingParams) -> Vec<(u32, f64)> {
    let t = f64::from(params.temperature);
    let z_max = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    // Below this f32 knows no probability (`exp::MIN_ARGUMENT`).
    let reachable = |c: &(u32, &f32)| (c.1 - z_max) / params.temperature >= -87.0;
    let weight = |(id, &z)| (id, (f64::from(z) / t).exp());
    let mut all: Vec<(u32, f64)> = (0u32..).zip(z).filter(reachable).map(weight).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all.truncate(params.top_k.unwrap_or(usize::MAX));
    let renormalise = |all: &mut Vec<(u32, f64)>| {
        let total: f64 = all.iter().map(|c| c.1).sum();
        all.iter_mut().for_each(|c| c.1 /= total);
    };
    renormalise(&mut all);
    let (mut before, top_p) = (0.0, f64::from(params.top_p));
    let kept = all.iter().take_while(|c| {
        let keep = before == 0.0 || top_p >= 1.0 || before < top_p;
        before += c.1;
        keep
    });
    let kept = kept.count();
    all.truncate(kept);
    let p_max = all[0].1;
    all.retain(|c| c.1 >= f64::from(params.min_p) * p_max);
    renormalise(&mut all);
    all
}

proptest! {
    #[test]
    fn survivors_are_the_reference(z in any_logits(), params in any_params()) {
        let found = Sampler::new(&params).survivors(&mut z.clone()).unwrap();
        let expected = reference(&z, &params);
        // f32 may judge the last candidate at a threshold otherwise: compare what both keep, and
        // let the rest be of threshold size.
        let common = found.len().min(expected.len());
        prop_assert!(found.len().abs_diff(expected.len()) <= 1, "{} {}", found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found.0, expected.0);
        }
        if found.len() == common && expected.len() == common {
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((f64::from(found.1) - expected.1).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn mass_is_conserved_and_order_holds(z in any_logits(), params in any_params()) {
        let found = Sampler::new(&params).survivors(&mut z.clone()).unwrap();
        let mass: f64 = found.iter().map(|s| f64::from(s.1)).sum();
        prop_assert!((mass - 1.0).abs() < 1e-5, "{}", mass);
        for pair in found.windows(2) {
            let (a, b) = (z[pair[0].0 as usize], z[pair[1].0 as usize]);
            prop_assert!(a > b || (a == b && pair[0].0 < pair[1].0));
            prop_assert!(pair[0].1 >= pair[1].1);
        }
    }

    #[test]
    fn the_token_is_a_survivor_and_repeats(
        z in any_logits(), params in any_params(), position in 0usize..100_000,
    ) {
        let mut sampler = Sampler::new(&params);
        let token = sampler.sample(&mut z.clone(), position).unwrap();
        // Scratch left by other rows does not matter.
        sampler.sample(&mut [1.0, 2.0, 3.0], 0).unwrap();
        prop_assert_eq!(sampler.sample(&mut z.clone(), position).unwrap(), token);
        prop_assert_eq!(Sampler::new(&params).sample(&mut z.clone(), position).unwrap(), token);
        let survivors = sampler.survivors(&mut z.clone()).unwrap();
        prop_assert!(survivors.iter().any(|s| s.0 == token));
    }
}

#[test]
fn seed_candidate_and_position_each_change_the_draws() {
    let draws = |seed, candidate, first: usize| -> Vec<u32> {
        let mut sampler = Sampler::new(&SamplingParams {
            seed,
            candidate,
            ..params()
        });
        (first..first + 64)
            .map(|at| sampler.sample(&mut [0.0; 64], at).unwrap())
            .collect()
    };
    let base = draws(5, 0, 0);
    assert_eq!(base, draws(5, 0, 0));
    assert_ne!(base, draws(6, 0, 0));
    assert_ne!(base, draws(5, 1, 0));
    assert_ne!(base, draws(5, 0, 64));
    // A draw depends on its own position alone, not on how many were made before it.
    assert_eq!(base[10..], draws(5, 0, 10)[..54]);
}
