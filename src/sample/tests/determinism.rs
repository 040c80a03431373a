//! The rules of specification 5.4 that concern a single sampler.

use super::{dry, greedy, params, sampler};
use crate::Error;
use crate::sample::{LogprobsMode, MirostatParams, Sampler, SamplingParams, ScoreRequest};

/// Parameters with many active stages, so that leaked state of any stage would be visible.
fn busy(seed: i64) -> SamplingParams {
    SamplingParams {
        repetition_penalty: 1.2,
        frequency_penalty: 0.25,
        dry: dry(0.5, 1.5, 1, &[3]),
        top_p: 0.95,
        seed,
        ..params()
    }
}

/// A row that depends on the number of tokens before it.
fn row(len: usize) -> Vec<f32> {
    let z = |id: usize| ((id * 37 + len * 11) % 29) as f32 / 16.0;
    (0..40).map(z).collect()
}

/// Tokens of a sampler that runs alone.
fn alone(params: &SamplingParams, candidate: u32, prompt: &[u32]) -> Vec<u32> {
    let mut sampler = Sampler::new(params, candidate, prompt);
    let token = |len| sampler.sample(&mut row(len), None, None).unwrap().id;
    (0..24).map(token).collect()
}

#[test]
fn the_same_seed_gives_the_same_tokens() {
    for seed in [0, -1, i64::MIN, i64::MAX] {
        assert_eq!(
            alone(&busy(seed), 0, &[5, 6]),
            alone(&busy(seed), 0, &[5, 6])
        );
    }
    assert_ne!(alone(&busy(1), 0, &[5, 6]), alone(&busy(2), 0, &[5, 6]));
}

#[test]
fn other_candidates_and_prompts_do_not_change_a_choice() {
    let prompts: [&[u32]; 3] = [&[5, 6], &[1, 2, 3], &[5, 6]];
    let params = busy(9);
    let mut choices = Vec::new();
    for prompt in prompts {
        for candidate in 0..4 {
            let sampler = Sampler::new(&params, candidate, prompt);
            choices.push((prompt, candidate, sampler, Vec::new()));
        }
    }
    for len in 0..24 {
        for (_, _, sampler, ids) in &mut choices {
            ids.push(sampler.sample(&mut row(len), None, None).unwrap().id);
        }
    }
    for (prompt, candidate, _, ids) in &choices {
        assert_eq!(ids, &alone(&params, *candidate, prompt));
    }
    assert_ne!(choices[0].3, choices[1].3, "candidates differ");
    assert_eq!(choices[0].3, choices[8].3, "equal prompts do not");
}

#[test]
fn greedy_consumes_no_randomness() {
    let greedy = |seed, candidate| {
        let params = SamplingParams {
            temperature: 0.0,
            ..busy(seed)
        };
        alone(&params, candidate, &[4])
    };
    assert_eq!(greedy(1, 0), greedy(2, 7));
    // A mask that leaves one token does not shift the numbers of the tokens after it.
    let mut masked = Sampler::new(&params(), 0, &[]);
    let only = super::mask([3]);
    masked.sample(&mut row(0), Some(&only), None).unwrap();
    let mut free = sampler(&params(), &[], &[3]);
    for len in 1..20 {
        let token = masked.sample(&mut row(len), None, None);
        assert_eq!(token, free.sample(&mut row(len), None, None));
    }
}

#[test]
fn seed_candidate_and_position_each_change_the_draws() {
    let draws = |seed, candidate, first: usize| -> Vec<u32> {
        let params = SamplingParams { seed, ..params() };
        let mut sampler = Sampler::new(&params, candidate, &[]);
        (0..first).for_each(|_| sampler.push(0));
        let token = |_| sampler.sample(&mut [0.0; 64], None, None).unwrap().id;
        (0..64).map(token).collect()
    };
    let base = draws(5, 0, 0);
    assert_eq!(base, draws(5, 0, 0));
    assert_ne!(base, draws(6, 0, 0));
    assert_ne!(base, draws(5, 1, 0));
    assert_ne!(base, draws(5, 0, 64));
    // A draw depends on its own position alone, not on how many were made before it.
    assert_eq!(base[10..], draws(5, 0, 10)[..54]);
}

#[test]
fn the_length_of_the_prompt_does_not_matter() {
    let params = params();
    assert_eq!(alone(&params, 0, &[]), alone(&params, 0, &[1; 100]));
}

#[test]
fn invalid_logits_are_an_error_in_every_mode() {
    for params in [params(), greedy(), busy(0)] {
        let mut sampler = sampler(&params, &[0], &[1, 1, 0]);
        for bad in [
            [0.0, f32::NAN],
            [0.0, f32::INFINITY],
            [f32::NEG_INFINITY; 2],
        ] {
            let error = Err(Error::InvalidLogits { position: 3 });
            assert_eq!(sampler.sample(&mut bad.clone(), None, None), error);
            let mask = super::mask([0]);
            assert_eq!(sampler.sample(&mut bad.clone(), Some(&mask), None), error);
        }
        // A failed attempt is not counted.
        assert!(sampler.sample(&mut [0.0, 1.0], None, None).is_ok());
        let error = Err(Error::InvalidLogits { position: 4 });
        assert_eq!(sampler.sample(&mut [f32::NAN], None, None), error);
    }
}

#[test]
fn a_sampler_whose_temperature_changes_is_one_of_that_temperature() {
    let params = |temperature| SamplingParams {
        temperature,
        ..busy(5)
    };
    let mut changing = Sampler::new(&params(0.3), 1, &[5, 6]);
    let mut ids = vec![];
    for (len, temperature) in [0.3, 1.7, 0.0, 1.7, 0.3, 0.9].into_iter().enumerate() {
        let (before, was) = (changing.identity(), changing.params().temperature);
        changing.set_temperature(temperature);
        assert_eq!(changing.identity() == before, was == temperature);
        let mut of_that = Sampler::resume(&params(temperature), 1, len, changing.memory());
        let score = Some(ScoreRequest {
            top: 2,
            mode: LogprobsMode::Processed,
        });
        let expected = of_that.sample(&mut row(len), None, score).unwrap();
        let found = changing.sample(&mut row(len), None, score).unwrap();
        assert_eq!(found, expected);
        ids.push(found.id);
    }
    assert!(ids.iter().any(|id| *id != ids[0]), "{ids:?}");
}

#[test]
fn a_resumed_and_a_following_sampler_continue_identically() {
    let mirostat = Some(MirostatParams {
        target_bits: 2.0,
        learning_rate: 0.5,
    });
    for params in [
        busy(5),
        SamplingParams {
            mirostat,
            ..busy(6)
        },
        greedy(),
    ] {
        let mut first = Sampler::new(&params, 2, &[5, 6, 5]);
        let mut follower = Sampler::new(&params, 2, &[5, 6, 5]);
        assert_ne!(first.identity(), follower.identity());
        for len in 0..12 {
            let mut resumed = Sampler::resume(&params, 2, first.position(), first.memory());
            let id = first.sample(&mut row(len), None, None).unwrap().id;
            let again = resumed.sample(&mut row(len), None, None).unwrap().id;
            assert_eq!((id, first.memory()), (again, resumed.memory()));
            assert_eq!(first.position(), resumed.position());
            follower.follow(id, first.mirostat_mu().unwrap_or_default());
            assert_eq!(follower.memory(), first.memory());
            assert_eq!(follower.position(), first.position());
        }
        assert_eq!(first.position(), 12);
    }
}
