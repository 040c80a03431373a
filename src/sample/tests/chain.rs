//! The chain agrees with a direct implementation of specification 5 for every token.

use super::reference::{Reference, dry_penalties};
use super::{dry, greedy, mask, params, sampler};
use crate::Error;
use crate::sample::{DryParams, MirostatParams, Sampler, SamplingParams, TokenMask};
use proptest::prelude::*;

/// Decisions closer to their threshold than this are not compared, because f32 may decide them
/// differently.
const MARGIN: f64 = 1e-4;

fn eighths(range: std::ops::Range<i16>) -> impl Strategy<Value = f32> {
    range.prop_map(|eighth| f32::from(eighth) / 8.0)
}

prop_compose! {
    /// Parameters of stages 1 to 4 with few binary digits. f32 computes exactly with them, so ties
    /// remain ties.
    fn exact_penalties(vocabulary: u32)(
        logit_bias in prop::collection::btree_map(0..vocabulary + 3, eighths(-40..40), 0..4),
        repetition_penalty in prop_oneof![Just(1.0), Just(0.5), Just(2.0)],
        frequency_penalty in prop_oneof![Just(0.0), eighths(-16..17)],
        presence_penalty in prop_oneof![Just(0.0), eighths(-16..17)],
        dry in prop::option::of((
            prop_oneof![Just(0.5), Just(1.0)],
            prop_oneof![Just(1.0), Just(2.0)],
            0usize..4,
            prop::collection::btree_set(0..vocabulary, 0..3),
        )),
    ) -> SamplingParams {
        let dry = dry.map(|(multiplier, base, allowed_length, breakers)| DryParams {
            multiplier,
            base,
            allowed_length,
            breakers: breakers.into_iter().collect(),
        });
        SamplingParams {
            logit_bias: logit_bias.into_iter().collect(),
            repetition_penalty,
            frequency_penalty,
            presence_penalty,
            dry,
            ..params()
        }
    }
}

prop_compose! {
    fn any_params(vocabulary: u32)(
        penalties in exact_penalties(vocabulary),
        temperature in prop_oneof![
            1 => Just(0.0f32), 1 => Just(9e-6f32), 2 => Just(1.0f32), 6 => 0.05f32..2.0],
        mirostat in prop::option::weighted(0.3, (0.1f32..6.0, 0.01f32..1.0)),
        top_k in prop::option::weighted(0.4, 1usize..12),
        top_p in prop_oneof![4 => Just(1.0f32), 1 => Just(0.0f32), 5 => 0.0f32..1.0],
        min_p in prop_oneof![5 => Just(0.0f32), 1 => Just(1.0f32), 4 => 0.0f32..1.0],
        seed: i64,
    ) -> SamplingParams {
        let mirostat = mirostat.map(|(target_bits, learning_rate)| MirostatParams {
            target_bits,
            learning_rate,
        });
        SamplingParams { temperature, mirostat, top_k, top_p, min_p, seed, ..penalties }
    }
}

/// The logits of one position, of which the first is finite, and possibly a mask that allows a finite
/// one.
fn any_row(vocabulary: u32) -> impl Strategy<Value = (Vec<f32>, Option<TokenMask>)> {
    let z = prop_oneof![8 => eighths(-20..20), 1 => Just(f32::NEG_INFINITY)];
    let row = prop::collection::vec(z, vocabulary as usize);
    let allowed = prop::collection::btree_set(0..vocabulary + 3, 0..12);
    (row, prop::option::of(allowed)).prop_map(|(mut row, allowed)| {
        row[0] = 0.5;
        let lowest = allowed.as_ref().and_then(|ids| ids.first().copied());
        if let Some(z) = lowest.and_then(|id| row.get_mut(id as usize)) {
            *z = 1.0;
        }
        let usable = |mask: &TokenMask| {
            (0..)
                .zip(&row)
                .any(|(id, z)| z.is_finite() && mask.allows(id))
        };
        let mask = allowed.map(mask).filter(usable);
        (row, mask)
    })
}

#[derive(Debug, Clone)]
struct Run {
    params: SamplingParams,
    candidate: u32,
    prompt: Vec<u32>,
    rows: Vec<(Vec<f32>, Option<TokenMask>)>,
}

/// History and rows short enough that DRY's powers of two stay exact.
fn any_run() -> impl Strategy<Value = Run> {
    (1u32..24).prop_flat_map(|vocabulary| {
        let prompt = prop::collection::vec(0..vocabulary.min(4), 0..12);
        let rows = prop::collection::vec(any_row(vocabulary), 1..8);
        (any_params(vocabulary), 0u32..4, prompt, rows).prop_map(
            |(params, candidate, prompt, rows)| Run {
                params,
                candidate,
                prompt,
                rows,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn tokens_are_those_of_the_reference(run in any_run()) {
        let mut reference = Reference::new(&run.params, run.candidate, &run.prompt);
        let mut sampler = Sampler::new(&run.params, run.candidate, &run.prompt);
        for (row, mask) in &run.rows {
            let expected = reference.survivors(row, mask.as_ref());
            if expected.margin < MARGIN {
                break;
            }
            let found = sampler.survivors(&mut row.clone(), mask.as_ref()).unwrap();
            prop_assert_eq!(found.len(), expected.candidates.len());
            for (found, expected) in found.iter().zip(&expected.candidates) {
                prop_assert_eq!(found.0, expected.0);
                prop_assert!((f64::from(found.1) - expected.1).abs() < 1e-5);
            }
            let Some(expected) = reference.sample(row, mask.as_ref(), MARGIN) else {
                break;
            };
            let found = sampler.sample(&mut row.clone(), mask.as_ref(), None).unwrap();
            prop_assert_eq!(found.id, expected);
            prop_assert!(mask.as_ref().is_none_or(|mask| mask.allows(found.id)));
            if let Some(mu) = sampler.mirostat_mu() {
                prop_assert!((f64::from(mu) - reference.mu).abs() < 1e-4);
            }
        }
    }

    #[test]
    fn adjusted_logits_are_those_of_the_reference(
        z in prop::collection::vec(-30.0f32..30.0, 8),
        bias in prop::collection::btree_map(0u32..8, -100.0f32..100.0, 0..4),
        penalties in (0.1f32..2.0, -2.0f32..2.0, -2.0f32..2.0),
        dry_params in prop::option::of((0.0f32..3.0, 1.0f32..2.5, 0usize..5)),
        history in prop::collection::vec(0u32..8, 0..20),
        prompt in 0usize..20,
    ) {
        let params = SamplingParams {
            logit_bias: bias.into_iter().collect(),
            repetition_penalty: penalties.0,
            frequency_penalty: penalties.1,
            presence_penalty: penalties.2,
            dry: dry_params.and_then(|(multiplier, base, allowed)| dry(multiplier, base, allowed, &[])),
            ..params()
        };
        let (prompt, generated) = history.split_at(prompt.min(history.len()));
        let mut reference = Reference::new(&params, 0, prompt);
        reference.generated = generated.to_vec();
        let mut found = z.clone();
        let largest = sampler(&params, prompt, generated).adjusted(&mut found, None).unwrap();
        prop_assert!(found.contains(&largest) && found.iter().all(|&z| z <= largest));
        for (found, expected) in found.into_iter().zip(reference.adjusted(&z, None)) {
            let error = (f64::from(found) - expected).abs();
            prop_assert!(error < 1e-5 * expected.abs().max(10.0), "{} {}", found, expected);
        }
    }

    #[test]
    fn dry_is_the_naive_search(
        history in prop::collection::vec(0u32..3, 0..160),
        prompt in 0usize..160,
        breakers in prop::collection::btree_set(0u32..6, 0..3),
        allowed_length in 0usize..6,
    ) {
        let breakers: Vec<u32> = breakers.into_iter().collect();
        let dry = dry(0.5, 1.25, allowed_length, &breakers);
        let params = SamplingParams { dry: dry.clone(), ..params() };
        let (prompt, generated) = history.split_at(prompt.min(history.len()));
        let mut found = [0.0; 6];
        sampler(&params, prompt, generated).adjusted(&mut found, None).unwrap();
        let penalties = dry_penalties(&history, &dry.unwrap());
        for (id, z) in (0..).zip(found) {
            let expected = penalties.get(&id).copied().unwrap_or_default();
            prop_assert!((expected + f64::from(z)).abs() <= 1e-4 * expected, "{} {}", id, z);
        }
    }
}

#[test]
fn dry_counts_fifty_tokens_at_most() {
    let penalty = |history: &[u32]| {
        let params = SamplingParams {
            dry: dry(1.0, 1.1, 2, &[]),
            ..params()
        };
        let mut z = [0.0; 2];
        sampler(&params, history, &[])
            .adjusted(&mut z, None)
            .unwrap();
        -z[0]
    };
    assert!((penalty(&[0; 51]) - 1.1f32.powi(48)).abs() < 1e-3);
    assert_eq!(penalty(&[0; 51]), penalty(&[0; 52]));
    assert!(penalty(&[0; 50]) < penalty(&[0; 51]));
    assert_eq!(penalty(&[0; 51]), penalty(&[0; 4096]));
}

#[test]
fn a_penalty_beyond_f32_does_not_forbid() {
    let params = SamplingParams {
        dry: dry(1e30, 1e30, 0, &[]),
        ..params()
    };
    let only = mask([0]);
    let mut sampler = sampler(&params, &[0, 0, 0], &[]);
    let sampled = sampler.sample(&mut [1.0, 2.0], Some(&only), None);
    assert_eq!(sampled.unwrap().id, 0);
}

#[test]
fn ids_beyond_the_row_are_ignored() {
    let params = SamplingParams {
        logit_bias: vec![(7, 100.0), (u32::MAX, 1.0)],
        repetition_penalty: 2.0,
        frequency_penalty: 1.0,
        dry: dry(1.0, 1.5, 0, &[]),
        ..params()
    };
    let mut z = [1.0, 2.0];
    let largest = sampler(&params, &[7, 7], &[8, 8]).adjusted(&mut z, None);
    assert_eq!((largest, z), (Ok(2.0), [1.0, 2.0]));
}

#[test]
fn a_mask_that_leaves_nothing_finite_is_a_dead_end() {
    let masks = [
        mask([]),
        mask([64]),     // beyond the row
        mask([1]),      // only what the model itself forbids
        mask([40, 41]), // words that extend beyond the row
    ];
    for params in [params(), greedy()] {
        for mask in &masks {
            let mut sampler = sampler(&params, &[], &[0, 0]);
            let mut row = [2.0, f32::NEG_INFINITY, 1.0];
            let error = Err(Error::GrammarDeadEnd { position: 2 });
            assert_eq!(sampler.sample(&mut row, Some(mask), None), error);
        }
    }
}

#[test]
fn bias_does_not_bring_back_what_is_masked() {
    let params = SamplingParams {
        logit_bias: vec![(0, 100.0)],
        ..greedy()
    };
    let sampled = sampler(&params, &[], &[]).sample(&mut [1.0, 0.5], Some(&mask([1])), None);
    assert_eq!(sampled.unwrap().id, 1);
}

#[test]
fn greedy_wins_over_mirostat() {
    let params = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 3.0,
            learning_rate: 0.5,
        }),
        ..greedy()
    };
    let mut sampler = sampler(&params, &[], &[]);
    let sampled = sampler.sample(&mut [0.0, 0.1, 0.0], None, None).unwrap();
    assert_eq!((sampled.id, sampler.mirostat_mu()), (1, Some(6.0)));
}

#[test]
fn mirostat_replaces_the_truncation() {
    let params = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 10.0,
            learning_rate: 0.1,
        }),
        top_k: Some(1),
        top_p: 0.0,
        min_p: 1.0,
        ..params()
    };
    let survivors = sampler(&params, &[], &[]).survivors(&mut [2.0, 1.0, 0.0], None);
    assert_eq!(survivors.unwrap().len(), 3);
}

#[test]
fn mirostat_keeps_candidates_at_its_limit() {
    let params = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 0.5,
            learning_rate: 0.1,
        }),
        ..params()
    };
    // One bit each, and the limit is one bit.
    let survivors = sampler(&params, &[], &[]).survivors(&mut [0.0, 0.0], None);
    assert_eq!(survivors, Ok(vec![(0, 0.5), (1, 0.5)]));
}

#[test]
fn inspection_does_not_change_the_sampler() {
    let params = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 2.0,
            learning_rate: 0.5,
        }),
        frequency_penalty: 1.0,
        ..params()
    };
    let rows = [[0.5, 0.25, 0.0, -0.5]; 12];
    let draws = |look: bool| -> Vec<u32> {
        let mut sampler = sampler(&params, &[1], &[]);
        rows.map(|row| {
            if look {
                sampler.survivors(&mut row.clone(), None).unwrap();
                sampler.adjusted(&mut row.clone(), None).unwrap();
            }
            sampler.sample(&mut row.clone(), None, None).unwrap().id
        })
        .to_vec()
    };
    assert_eq!(draws(true), draws(false));
}
