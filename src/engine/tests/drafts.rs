//! Drafts change how many steps the tokens take, never the tokens.

use super::super::generation::{SpanBudget, TokenRules};
use super::*;
use crate::sample::{MirostatParams, ScoreRequest};

const CONTEXT: usize = 64;

fn limits(speculation: Speculation) -> EngineLimits {
    EngineLimits {
        speculation,
        // Tokens come one by one without drafts.
        max_run_ahead_tokens: 1,
        ..EngineLimits::default()
    }
}

/// The request with what its first candidate will be as its prediction, but each `changed`-th token.
pub(super) fn predicted(request: Generation, changed: usize) -> Generation {
    let context_tokens = CONTEXT.max(request.prompt.len());
    let mut ids = ids_of(&expected_events(&request, context_tokens));
    for id in ids.iter_mut().skip(changed - 1).step_by(changed) {
        *id = (*id + 1) % fake_model::VOCAB as u32;
    }
    Generation {
        drafts: DraftRules {
            prediction: Some(ids.into()),
            ..request.drafts
        },
        ..request
    }
}

/// Models that choose on host and device, without states and with them.
fn models() -> impl Iterator<Item = FakeModel> {
    let kinds = [(false, 0), (true, 0), (false, 3), (true, 3)];
    kinds.into_iter().map(|(samples, states)| {
        let mut model = FakeModel::new(CONTEXT, 64, 4).with_states(states);
        model.samples = samples;
        model
    })
}

/// Runs the request; returns the kinds of the calls after its prompt.
#[track_caller]
fn run(model: FakeModel, speculation: Speculation, request: &Generation) -> Vec<Kind> {
    let mut bench = Bench::new(model, limits(speculation));
    let mut events = bench.submit_all(std::slice::from_ref(request));
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(std::slice::from_ref(request), CONTEXT));
    assert!(bench.all_memory_is_free());
    let calls = bench.calls().into_iter().skip(1);
    calls.map(|call| call.kind).collect()
}

fn requests() -> Vec<Generation> {
    let sampled = |seed| Generation {
        sampling: sampled(seed),
        ..generation(5, 9, 40)
    };
    let penalties = SamplingParams {
        repetition_penalty: 1.3,
        frequency_penalty: 0.5,
        presence_penalty: -0.5,
        logit_bias: vec![(7, 2.0), (9, -3.0)],
        ..sampled(3).sampling
    };
    let scores = Some(ScoreRequest {
        top: 2,
        ..ScoreRequest::default()
    });
    vec![
        generation(5, 9, 40),
        sampled(1),
        sampled(-7),
        Generation {
            sampling: penalties.clone(),
            ..generation(6, 9, 40)
        },
        Generation {
            sampling: SamplingParams {
                temperature: 0.0,
                ..penalties
            },
            scores,
            ..generation(6, 9, 40)
        },
        Generation {
            constraint: Some(constraint::regex("([a-f]+[0-4]{3},)+")),
            stop_ids: vec![2],
            ..sampled(4)
        },
    ]
}

#[test]
fn right_drafts_take_few_steps() {
    for request in requests() {
        let request = predicted(request, usize::MAX);
        for model in models() {
            let steps = run(model, Speculation::Predictions, &request);
            let count = ids_of(&expected_events(&request, CONTEXT)).len();
            assert!(steps.contains(&Kind::Verify), "{steps:?}");
            // The first ones are measured, the last ones are fewer than a step may verify.
            assert!(steps.len() <= 5 + count / 8, "{count}: {steps:?}");
        }
    }
}

#[test]
fn wrong_drafts_change_nothing() {
    for request in requests() {
        for changed in [1, 2, 3, 5, 9] {
            let request = predicted(request.clone(), changed);
            for model in models() {
                run(model, Speculation::Predictions, &request);
            }
        }
    }
}

#[test]
fn limits_and_stops_hold_within_a_draft() {
    for max_tokens in [1, 2, 3, 8, 9, 10, 55, 56, 80] {
        for changed in [4, usize::MAX] {
            let request = predicted(generation(5, 9, max_tokens), changed);
            let ids = ids_of(&expected_events(&request, CONTEXT));
            for stop in [ids[0], ids[ids.len() / 2], 0] {
                let request = Generation {
                    stop_ids: vec![stop],
                    ..request.clone()
                };
                for model in models() {
                    run(model, Speculation::Predictions, &request);
                }
            }
        }
    }
}

#[test]
fn candidates_have_drafts_of_their_own() {
    for candidates in [2, 3] {
        let request = Generation {
            candidates,
            ..predicted(requests().remove(1), usize::MAX)
        };
        for mut model in models() {
            // One after another.
            model.max_batch = 1;
            let steps = run(model, Speculation::All, &request);
            assert!(steps.contains(&Kind::Verify), "{steps:?}");
        }
    }
}

#[test]
fn what_the_text_repeats_is_looked_up() {
    // One token all the time, which no constraint forces.
    let rules = TokenRules::new(fake_model::VOCAB, Some(&[7]), 0, []);
    let request = Generation {
        rules: rules.map(Rc::new),
        ..generation(5, 9, 50)
    };
    for model in models() {
        let steps = run(model, Speculation::All, &request);
        assert!(steps.len() <= 18, "{steps:?}");
    }
    for model in models() {
        let steps = run(model, Speculation::Predictions, &request);
        assert!(!steps.contains(&Kind::Verify), "{steps:?}");
    }
}

#[test]
fn nothing_is_guessed_where_it_must_not_be() {
    let request = predicted(generation(5, 9, 40), usize::MAX);
    let none = |request: &Generation, speculation| {
        for model in models() {
            let steps = run(model, speculation, request);
            assert!(!steps.contains(&Kind::Verify), "{steps:?}");
        }
    };
    none(&request, Speculation::Off);
    let mut limited = request.clone();
    limited.drafts.max_tokens = 0;
    none(&limited, Speculation::All);
    let mut limited = request.clone();
    limited.drafts.min_tokens = 8;
    none(&limited, Speculation::All);
    let mirostat = SamplingParams {
        mirostat: Some(MirostatParams {
            target_bits: 3.0,
            learning_rate: 0.1,
        }),
        ..sampled(1)
    };
    let with_mirostat = Generation {
        sampling: mirostat,
        ..generation(5, 9, 40)
    };
    none(&predicted(with_mirostat, usize::MAX), Speculation::All);
}

#[test]
fn n_max_bounds_a_draft() {
    let mut request = predicted(generation(5, 9, 40), usize::MAX);
    request.drafts.max_tokens = 3;
    for model in models() {
        let steps = run(model, Speculation::Predictions, &request);
        assert!((10..=13).contains(&steps.len()), "{steps:?}");
    }
}

/// The same models with drafts of their own, each `wrong`-th token of which is wrong.
fn drafting(wrong: usize) -> impl Iterator<Item = FakeModel> {
    models().map(move |mut model| {
        model.wrong_drafts = Some(wrong);
        model
    })
}

#[test]
fn drafts_of_the_model_change_nothing() {
    for request in requests() {
        for wrong in [1, 2, 3, 7, 1000] {
            for model in drafting(wrong) {
                let steps = run(model, Speculation::Model, &request);
                assert!(steps.contains(&Kind::Draft), "{steps:?}");
            }
        }
    }
}

#[test]
fn right_drafts_of_the_model_take_few_steps() {
    let request = generation(5, 9, 40);
    for model in drafting(1000) {
        let steps = run(model, Speculation::Model, &request);
        let verified = steps.iter().filter(|it| **it == Kind::Verify).count();
        assert!((4..=7).contains(&verified), "{steps:?}");
        assert!(steps.len() <= 12 + 4, "{steps:?}");
    }
}

#[test]
fn a_model_drafts_only_if_it_may() {
    let request = generation(5, 9, 40);
    let image = Generation {
        prompt: super::super::prompt::Prompt::new([spans::image(1, 3)]),
        ..request.clone()
    };
    for (request, speculation) in [
        (&request, Speculation::Off),
        (&request, Speculation::Predictions),
        (&image, Speculation::Model),
    ] {
        for model in drafting(1000) {
            let steps = run(model, speculation, request);
            assert!(!steps.contains(&Kind::Draft), "{steps:?}");
        }
    }
}

#[test]
fn a_failed_draft_fails_its_candidate_alone() {
    for (trial, model) in drafting(3).zip(drafting(3)) {
        let request = generation(5, 9, 40);
        let steps = run(trial, Speculation::Model, &request);
        let at = 1 + steps.iter().position(|it| *it == Kind::Draft).unwrap();
        let failure = crate::Error::OutOfMemory("no more".into());
        let mut bench = Bench::new(model, limits(Speculation::Model));
        let failing = (at, failure.clone());
        bench.controls.fail_at.borrow_mut().push(failing);
        let mut events = bench.submit(&request);
        assert!(bench.settle().is_pending());
        let found = read_all(&mut events);
        assert_eq!(found.last(), Some(&Event::Failed(failure)));
        assert!(bench.all_memory_is_free());
    }
}

/// Each token of a constraint that leaves no choice is known before.
#[test]
fn what_a_constraint_forces_takes_few_steps() {
    let request = Generation {
        constraint: Some(constraint::regex("abcdefghabdhcfgabcfhged[a-f]+")),
        ..generation(5, 9, 25)
    };
    for model in models() {
        let steps = run(model, Speculation::Predictions, &request);
        let verified = steps.iter().filter(|it| **it == Kind::Verify).count();
        assert!(verified >= 3 && steps.len() <= 12, "{steps:?}");
    }
    for model in models() {
        let steps = run(model, Speculation::Off, &request);
        assert!(!steps.contains(&Kind::Verify), "{steps:?}");
    }
}

/// A budget forbids nothing before it may be spent, so tokens are run ahead up to there.
#[test]
fn a_budget_ends_running_ahead_only_near_its_end() {
    let budget = SpanBudget {
        open: vec![],
        close: 9,
        max_tokens: 20,
        partial: Rc::default(),
    };
    let request = Generation {
        rules: Some(Rc::new(TokenRules::with_budget(
            None,
            fake_model::VOCAB,
            budget,
        ))),
        ..generation(5, 9, 40)
    };
    let bench = |max_run_ahead_tokens| {
        let limits = EngineLimits {
            max_run_ahead_tokens,
            ..EngineLimits::default()
        };
        Bench::new(FakeModel::new(CONTEXT, 64, 4), limits)
    };
    for max in [1, 16] {
        let mut bench = bench(max);
        let mut events = bench.submit_all(std::slice::from_ref(&request));
        let found = bench.read_to_end(&mut events);
        assert_eq!(found, expected_all(std::slice::from_ref(&request), CONTEXT));
        let calls = bench.calls();
        let steps = calls.iter().filter_map(Call::steps);
        assert_eq!(steps.max() > Some(4), max > 1, "{calls:?}");
    }
}

#[test]
fn a_cancelled_step_frees_its_memory() {
    for model in models() {
        let request = predicted(generation(5, 9, 40), usize::MAX);
        let mut bench = Bench::new(model, limits(Speculation::All));
        bench.controls.suspensions.set(1);
        let events = bench.submit(&request);
        while bench
            .calls()
            .last()
            .is_none_or(|it| it.kind != Kind::Verify)
        {
            assert!(bench.step().is_pending());
        }
        drop(events);
        assert!(bench.settle().is_pending());
        assert!(bench.all_memory_is_free());
        let next = requests().remove(1);
        let mut events = bench.submit(&next);
        assert!(bench.settle().is_pending());
        assert_eq!(read_all(&mut events), expected_events(&next, CONTEXT));
    }
}

#[test]
fn a_failed_step_fails_its_candidate_alone() {
    for (trial, model) in models().zip(models()) {
        let request = predicted(generation(5, 9, 40), usize::MAX);
        let steps = run(trial, Speculation::All, &request);
        let at = 1 + steps.iter().position(|it| *it == Kind::Verify).unwrap();
        let failure = crate::Error::OutOfMemory("no more".into());
        let mut bench = Bench::new(model, limits(Speculation::All));
        let failing = (at, failure.clone());
        bench.controls.fail_at.borrow_mut().push(failing);
        let mut events = bench.submit(&request);
        assert!(bench.settle().is_pending());
        let found = read_all(&mut events);
        assert_eq!(bench.calls()[at].kind, Kind::Verify);
        assert_eq!(found.last(), Some(&Event::Failed(failure)));
        let told = &found[..found.len() - 1];
        assert_eq!(told, &expected_events(&request, CONTEXT)[..told.len()]);
        assert!(bench.all_memory_is_free());
    }
}
