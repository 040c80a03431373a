//! Log-probabilities of chosen tokens (specification 7).

use super::reference::{Reference, softmax};
use super::{greedy, mask, params, sampler};
use crate::sample::{LogprobsMode, SamplingParams, ScoreRequest, TokenScore, score};
use proptest::prelude::*;

fn any_row() -> impl Strategy<Value = Vec<f32>> {
    let z = prop_oneof![
        4 => -30.0f32..30.0,
        4 => (-8i8..8).prop_map(f32::from),
        1 => Just(f32::NEG_INFINITY),
    ];
    prop::collection::vec(z, 1..700).prop_map(|mut row| {
        let middle = row.len() / 2;
        row[middle] = -0.0;
        row
    })
}

/// Checks the properties that every score has, in both distributions.
fn check_form(score: &TokenScore, row: &[f32], top: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(score.top.len(), top.min(row.len()));
    prop_assert!(score.logprob <= 0.0 && score.raw_logprob <= 0.0);
    prop_assert!(score.top.iter().all(|t| t.1 <= 0.0));
    let mass: f64 = score.top.iter().map(|t| f64::from(t.1).exp()).sum();
    prop_assert!(mass <= 1.001, "{}", mass);
    for pair in score.top.windows(2) {
        let z = pair.iter().map(|t| row[t.0 as usize]).collect::<Vec<_>>();
        prop_assert!(z[0] > z[1] || (z[0] == z[1] && pair[0].0 < pair[1].0));
        prop_assert!(pair[0].1 >= pair[1].1);
    }
    // No better token is missing, and the token itself has the same log-probability in both places.
    let worst = score
        .top
        .last()
        .map_or(f32::INFINITY, |t| row[t.0 as usize]);
    let better = row.iter().filter(|&&z| z > worst).count();
    prop_assert!(top == 0 || better < score.top.len());
    if let Some(own) = score.top.iter().find(|t| t.0 == score.id) {
        prop_assert_eq!(own.1.to_bits(), score.logprob.to_bits());
    }
    Ok(())
}

fn near(found: f32, expected: f64) -> bool {
    (expected == 0.0 && found == f32::NEG_INFINITY)
        || (f64::from(found) - expected.ln()).abs() < 1e-5 * expected.ln().abs().max(1.0)
}

proptest! {
    #[test]
    fn raw_scores(row in any_row(), id in any::<prop::sample::Index>(), top in 0usize..25) {
        let id = id.index(row.len()) as u32;
        let found = score(&row, id, top);
        check_form(&found, &row, top)?;
        prop_assert_eq!(found.raw_logprob.to_bits(), found.logprob.to_bits());
        let z: Vec<f64> = row.iter().copied().map(f64::from).collect();
        let p = softmax(&z, 1.0);
        prop_assert!(near(found.logprob, p[id as usize]), "{} {}", found.logprob, p[id as usize].ln());
        for (id, logprob) in found.top {
            prop_assert!(near(logprob, p[id as usize]));
        }
    }

    #[test]
    fn scores_of_chosen_tokens(
        row in any_row(),
        temperature in prop_oneof![Just(0.0f32), Just(1.0f32), 0.2f32..2.0],
        processed: bool,
        top in 0usize..8,
        allowed in prop::option::of(prop::collection::btree_set(0u32..700, 0..40)),
        seed: i64,
    ) {
        let params = SamplingParams {
            logit_bias: vec![(0, 3.5)],
            repetition_penalty: 1.5,
            presence_penalty: 0.75,
            temperature,
            top_k: Some(3),
            seed,
            ..params()
        };
        let mode = if processed { LogprobsMode::Processed } else { LogprobsMode::Raw };
        let middle = row.len() as u32 / 2;
        let mask = allowed.map(|ids| mask(ids.into_iter().chain([middle])));
        let (mut one, mut other) = (row.clone(), row.clone());
        let request = ScoreRequest { top, mode };
        let found = sampler(&params, &[0], &[0]).sample(&mut one, mask.as_ref(), Some(request)).unwrap();
        let unscored = sampler(&params, &[0], &[0]).sample(&mut other, mask.as_ref(), None).unwrap();
        prop_assert_eq!((found.id, None), (unscored.id, unscored.score));

        let found = found.score.unwrap();
        prop_assert_eq!(found.raw_logprob.to_bits(), score(&row, found.id, 0).logprob.to_bits());
        if processed {
            check_form(&found, &one, top)?;
            let mut reference = Reference::new(&params, 0, &[0]);
            reference.generated = vec![0];
            let p = reference.probabilities(&reference.adjusted(&row, mask.as_ref()));
            prop_assert!(near(found.logprob, p[found.id as usize]));
            for (id, logprob) in found.top {
                prop_assert!(near(logprob, p[id as usize]), "{} {} {}", id, logprob, p[id as usize].ln());
            }
        } else {
            prop_assert_eq!(&found, &score(&row, found.id, top));
        }
    }
}

#[test]
fn a_large_vocabulary_is_summed_accurately() {
    let flat = score(&vec![0.25; 150_000], 7, 2);
    assert!((f64::from(flat.logprob) + 150_000f64.ln()).abs() < 1e-6);
    assert_eq!(flat.top, [(0, flat.logprob), (1, flat.logprob)]);
    // Each token of the tail is below an ulp of the best one.
    let mut row = vec![-17.0; 150_000];
    row[149_999] = 0.0;
    let expected = -(149_999.0 * f64::exp(-17.0)).ln_1p();
    assert!((f64::from(score(&row, 149_999, 1).logprob) - expected).abs() < 1e-7);
}

#[test]
fn certain_and_impossible_tokens() {
    let row = [f32::NEG_INFINITY, -0.0, f32::NEG_INFINITY];
    let certain = score(&row, 1, 2);
    assert_eq!(certain.logprob.to_bits(), 0);
    assert_eq!(certain.top, [(1, 0.0), (0, f32::NEG_INFINITY)]);
    assert_eq!(score(&row, 2, 0).logprob, f32::NEG_INFINITY);
    assert_eq!(score(&row, 99, 0).logprob, f32::NEG_INFINITY);
}

#[test]
fn processed_scores_of_a_greedy_token_have_temperature_one() {
    let row = [1.0, 0.0];
    let request = ScoreRequest {
        top: 1,
        mode: LogprobsMode::Processed,
    };
    for temperature in [0.0, 9e-6] {
        let params = SamplingParams {
            temperature,
            ..greedy()
        };
        let sampled = sampler(&params, &[], &[]).sample(&mut row.clone(), None, Some(request));
        assert_eq!(sampled.unwrap().score, Some(score(&row, 0, 1)));
    }
}

#[test]
fn processed_scores_are_from_before_the_truncation() {
    let request = ScoreRequest {
        top: 2,
        mode: LogprobsMode::Processed,
    };
    let params = SamplingParams {
        top_k: Some(1),
        ..params()
    };
    let sampled = sampler(&params, &[], &[]).sample(&mut [0.0, 0.0], None, Some(request));
    let half = 0.5f32.ln();
    assert_eq!(sampled.unwrap().score.unwrap().top, [(0, half), (1, half)]);
}
