//! The vectors of specification 16 by their names, each value within 1e-5.

use super::{dry, greedy, mask, params, sampler};
use crate::sample::draw::draw;
use crate::sample::{MirostatParams, Sampler, SamplingParams, philox};

const Z: [f32; 6] = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];

fn close(found: f32, expected: f32) -> bool {
    (found - expected).abs() < 1e-5
}

fn check_adjusted(mut sampler: Sampler, z: &[f32], expected: &[f32]) {
    let mut found = z.to_vec();
    sampler.adjusted(&mut found, None).unwrap();
    assert_eq!(found.len(), expected.len());
    assert!(
        found.iter().zip(expected).all(|(&f, &e)| close(f, e)),
        "{found:?} is not {expected:?}"
    );
}

fn check_survivors(sampler: &mut Sampler, z: &[f32], expected: &[(u32, f32)]) {
    let found = sampler.survivors(&mut z.to_vec(), None).unwrap();
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    assert!(
        found
            .iter()
            .zip(expected)
            .all(|(f, e)| f.0 == e.0 && close(f.1, e.1)),
        "{found:?} is not {expected:?}"
    );
}

fn v1_params() -> SamplingParams {
    SamplingParams {
        logit_bias: vec![(3, 1.5)],
        repetition_penalty: 1.2,
        frequency_penalty: 0.5,
        presence_penalty: 0.4,
        ..params()
    }
}

#[test]
fn v1() {
    let sampler = sampler(&v1_params(), &[0, 4], &[1, 1]);
    check_adjusted(sampler, &Z, &[2.5, 0.683333, 2.0, 2.5, 0.0, -1.0]);
}

#[test]
fn v2() {
    let params = SamplingParams {
        temperature: 0.8,
        top_k: Some(4),
        top_p: 0.85,
        min_p: 0.2,
        ..v1_params()
    };
    let expected = [(0, 0.394437), (3, 0.394437), (2, 0.211127)];
    check_survivors(&mut sampler(&params, &[0, 4], &[1, 1]), &Z, &expected);
}

#[test]
fn v3() {
    let params = SamplingParams {
        repetition_penalty: 1.5,
        ..params()
    };
    let expected = [3.0, 2.5, 2.0, 1.0, 0.0, -1.5];
    check_adjusted(sampler(&params, &[5], &[]), &Z, &expected);
}

#[test]
fn v4() {
    let params = SamplingParams {
        top_p: 0.0,
        ..params()
    };
    check_survivors(&mut sampler(&params, &[], &[]), &Z, &[(0, 1.0)]);
}

#[test]
fn v5() {
    let params = SamplingParams {
        top_p: 0.8,
        ..params()
    };
    let mut sampler = sampler(&params, &[], &[]);
    let expected = [(0, 0.506480), (1, 0.307196), (2, 0.186324)];
    check_survivors(&mut sampler, &Z, &expected);
    for (u, id) in [(0.0, 0), (0.50, 0), (0.51, 1), (0.82, 2), (0.999_999_94, 2)] {
        let rank = draw(&mut sampler.candidates, u);
        assert_eq!(sampler.candidates.id(rank), id, "u = {u}");
    }
}

#[test]
fn v6() {
    let params = SamplingParams {
        top_k: Some(2),
        top_p: 0.62,
        ..params()
    };
    check_survivors(&mut sampler(&params, &[], &[]), &Z, &[(0, 1.0)]);
}

#[test]
fn v7() {
    let params = SamplingParams {
        top_p: 0.6,
        min_p: 0.5,
        ..params()
    };
    let expected = [(0, 0.622459), (1, 0.377541)];
    check_survivors(&mut sampler(&params, &[], &[]), &Z, &expected);
}

#[test]
fn v8() {
    let params = SamplingParams {
        temperature: 2.0,
        top_p: 0.73,
        ..params()
    };
    let expected = [(0, 0.419229), (1, 0.326496), (2, 0.254275)];
    check_survivors(&mut sampler(&params, &[], &[]), &Z, &expected);
}

#[test]
fn v9() {
    let params = SamplingParams {
        min_p: 1.0,
        ..params()
    };
    check_survivors(&mut sampler(&params, &[], &[]), &Z, &[(0, 1.0)]);
}

#[test]
fn v10() {
    let params = SamplingParams {
        top_k: Some(1),
        ..params()
    };
    let found = sampler(&params, &[], &[]).survivors(&mut Z.to_vec(), Some(&mask([2, 4])));
    assert_eq!(found, Ok(vec![(2, 1.0)]));
}

#[test]
fn v11() {
    let params = SamplingParams {
        logit_bias: vec![(5, 100.0)],
        ..greedy()
    };
    let mut sampler = sampler(&params, &[], &[]);
    check_survivors(&mut sampler, &Z, &[(5, 1.0)]);
    let sampled = sampler.sample(&mut Z.to_vec(), None, None).unwrap();
    assert_eq!((sampled.id, sampled.score), (5, None));
}

#[test]
fn v12() {
    let z = [1.0, 1.0, 1.0, 0.0];
    let params = SamplingParams {
        top_k: Some(2),
        ..params()
    };
    check_survivors(&mut sampler(&params, &[], &[]), &z, &[(0, 0.5), (1, 0.5)]);
    let sampled = sampler(&greedy(), &[], &[]).sample(&mut z.clone(), None, None);
    assert_eq!(sampled.unwrap().id, 0);
}

#[test]
fn v13() {
    let params = SamplingParams {
        repetition_penalty: 2.0,
        presence_penalty: 0.4,
        ..params()
    };
    check_adjusted(sampler(&params, &[], &[0]), &[0.3, 0.0], &[-0.25, 0.0]);
}

#[test]
fn v14() {
    let params = SamplingParams {
        logit_bias: vec![(0, 1.0)],
        repetition_penalty: 2.0,
        ..params()
    };
    check_adjusted(sampler(&params, &[0], &[]), &[1.0, 0.0], &[1.0, 0.0]);
}

#[test]
fn v15() {
    let params = SamplingParams {
        frequency_penalty: 0.3,
        presence_penalty: 0.2,
        ..params()
    };
    let z = [1.0, 0.5, 0.2];
    check_adjusted(sampler(&params, &[0, 0, 1], &[]), &z, &z);
    check_adjusted(sampler(&params, &[], &[0, 0, 1]), &z, &[0.2, 0.0, 0.2]);
}

/// Penalties that DRY puts on a flat row of ten after the history of V16, wherever the prompt ends.
fn check_dry(allowed_length: usize, breakers: &[u32], expected: &[(u32, f32)]) {
    let history = [0, 1, 2, 2, 1, 2, 9, 0, 1, 2];
    let params = SamplingParams {
        dry: dry(0.8, 1.75, allowed_length, breakers),
        ..params()
    };
    let mut row = [0.0; 10];
    for &(id, penalty) in expected {
        row[id as usize] = -penalty;
    }
    for prompt in 0..=history.len() {
        let (prompt, generated) = history.split_at(prompt);
        check_adjusted(sampler(&params, prompt, generated), &[0.0; 10], &row);
    }
}

#[test]
fn v16() {
    check_dry(2, &[], &[(2, 1.4), (9, 0.8)]);
}

#[test]
fn v17() {
    check_dry(2, &[2], &[]);
    check_dry(2, &[1], &[]);
    check_dry(2, &[9], &[(2, 1.4)]);
}

#[test]
fn v18() {
    check_dry(1, &[1], &[(2, 0.8), (9, 0.8)]);
}

/// The parameters of a target perplexity, with a seed whose first number lies in `u`.
fn mirostat(target_perplexity: f32, u: std::ops::Range<f32>) -> SamplingParams {
    let first_in_range = |&seed: &i64| u.contains(&philox::uniform(seed, 0, 0));
    SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: target_perplexity.log2(),
            learning_rate: 0.1,
        }),
        seed: (0..1000).find(first_in_range).unwrap(),
        ..params()
    }
}

#[test]
fn v19() {
    let mut sampler = sampler(&mirostat(4.0, 0.51..0.81), &[], &[]);
    assert_eq!(sampler.mirostat_mu(), Some(4.0));
    let expected = [(0, 0.506480), (1, 0.307196), (2, 0.186324)];
    check_survivors(&mut sampler, &Z, &expected);
    let sampled = sampler.sample(&mut Z.to_vec(), None, None).unwrap();
    assert_eq!(sampled.id, 1);
    let mu = sampler.mirostat_mu().unwrap();
    assert!(close(mu, 4.015575), "{mu}");
}

#[test]
fn v20() {
    let mut sampler = sampler(&mirostat(1.5, 0.0..1.0), &[], &[]);
    let mu = sampler.mirostat_mu().unwrap();
    assert!(close(mu, 1.169925), "{mu}");
    check_survivors(&mut sampler, &Z, &[(0, 1.0)]);
    sampler.sample(&mut Z.to_vec(), None, None).unwrap();
    let mu = sampler.mirostat_mu().unwrap();
    assert!(close(mu, 1.116131), "{mu}");
}
