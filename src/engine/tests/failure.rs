//! A failing step fails one candidate; a lost device fails everything; invalid input is refused.

use super::*;
use crate::{Error, RequestFault};

fn bench() -> Bench {
    Bench::new(FakeModel::new(64, 16, 4), EngineLimits::default())
}

#[test]
fn a_failing_step_fails_one_choice() {
    for (call, sampling) in [(0, greedy()), (2, greedy()), (3, sampled(1))] {
        let mut bench = bench();
        let error = Error::OutOfMemory("no more".into());
        bench
            .controls
            .fail_at
            .borrow_mut()
            .push((call, error.clone()));
        let failing = Generation {
            sampling,
            ..generation(1, 5, 20)
        };
        let other = generation(2, 5, 20);
        let mut events = bench.submit(&failing);
        // If the first step fails, the other request waits.
        let waiting = (call == 0).then(|| bench.submit(&other));
        assert!(bench.settle().is_pending());
        let found = read_all(&mut events);
        let sent = found.len() - 1;
        assert_eq!(found[..sent], expected_events(&failing, 64)[..sent]);
        assert_eq!(found[sent], Event::Failed(error));
        let mut others = waiting.unwrap_or_else(|| bench.submit(&other));
        assert!(bench.settle().is_pending());
        assert_eq!(read_all(&mut others), expected_events(&other, 64));
        assert!(bench.all_memory_is_free());
    }
}

#[test]
fn a_model_that_breaks_its_contract_is_an_internal_error() {
    for sampling in [greedy(), sampled(1)] {
        let mut bench = bench();
        bench.controls.cheat_at.set(Some(1));
        let mut events = bench.submit(&Generation {
            sampling,
            ..generation(1, 5, 20)
        });
        assert!(bench.settle().is_pending());
        let last = read_all(&mut events).pop();
        assert!(
            matches!(last, Some(Event::Failed(Error::Internal(_)))),
            "{last:?}"
        );
    }
}

#[test]
fn invalid_logits_report_their_position() {
    for sampling in [greedy(), sampled(1)] {
        let generation = Generation {
            sampling,
            ..generation(1, 5, 20)
        };
        let ids = ids_of(&expected_events(&generation, 64));
        for position in [0, 4] {
            let mut bench = bench();
            let history = [generation.prompt.ids(), &ids[..position]].concat();
            *bench.controls.poison.borrow_mut() = Poison::After(history);
            let mut events = bench.submit(&generation);
            assert!(bench.settle().is_pending());
            let found = read_all(&mut events);
            assert_eq!(ids_of(&found), ids[..position]);
            let failure = Event::Failed(Error::InvalidLogits { position });
            assert_eq!(found[position..], [failure]);
        }
    }
}

#[test]
fn invalid_logits_past_the_end_do_not_count() {
    let mut generation = generation(2, 5, 60);
    let ids = ids_of(&expected_events(&generation, 64));
    // The eleventh token is inside a run of eight (tokens 8 to 15).
    let end = ids.iter().position(|id| *id == ids[10]).unwrap();
    assert!(end > 7);
    generation.stop_ids = vec![ids[end]];
    let mut bench = bench();
    let history = [generation.prompt.ids(), &ids[..=end]].concat();
    *bench.controls.poison.borrow_mut() = Poison::After(history);
    let mut events = bench.submit(&generation);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut events), expected_events(&generation, 64));
}

#[test]
fn a_failing_candidate_fails_alone() {
    let generation = Generation {
        sampling: sampled(3),
        candidates: 8,
        ..generation(1, 5, 20)
    };
    let poison = Poison::OneIn(30);
    let mut bench = bench();
    *bench.controls.poison.borrow_mut() = poison.clone();
    let mut events = bench.submit_all(std::slice::from_ref(&generation));
    let found = bench.read_to_end(&mut events).remove(0);
    for (found, candidate) in found.iter().zip(0..) {
        assert_eq!(found, &expected(&generation, candidate, 64, &poison));
    }
    let has_failed = |events: &&Vec<Event>| matches!(events.last(), Some(Event::Failed(_)));
    assert!((1..8).contains(&found.iter().filter(has_failed).count()));
    assert!(bench.all_memory_is_free());
}

#[test]
fn a_row_that_fails_alone_too_fails_alone() {
    let requests = [1, 2, 3, 4].map(|owner| Generation {
        sampling: sampled(3),
        ..generation(owner, 5, 8)
    });
    let error = Error::OutOfMemory("no more".into());
    // After four prompts comes a batch of all; then its rows one by one.
    for (failing, fails) in [(vec![4], None), (vec![4, 7], Some(2))] {
        let mut bench = bench();
        let failures = failing.into_iter().map(|call| (call, error.clone()));
        bench.controls.fail_at.borrow_mut().extend(failures);
        let mut events = bench.submit_all(&requests);
        let found = bench.read_to_end(&mut events);
        let mut expected = expected_all(&requests, 64);
        if let Some(at) = fails {
            expected[at][0].truncate(1);
            expected[at][0].push(Event::Failed(error.clone()));
        }
        assert_eq!(found, expected);
        let calls = bench.calls();
        assert_eq!(calls[4].owners, [1, 2, 3, 4]);
        for (owner, call) in (1..).zip(&calls[5..9]) {
            assert_eq!((call.kind, &*call.owners), (Kind::Host, &[owner][..]));
        }
        assert!(calls[9].owners.len() > 1);
        assert!(bench.all_memory_is_free());
    }
}

#[test]
fn a_failing_prompt_fails_its_candidates() {
    let mut bench = bench();
    let error = Error::OutOfMemory("no more".into());
    bench.controls.fail_at.borrow_mut().push((0, error.clone()));
    let both = [1, 2].map(|owner| Generation {
        candidates: 3,
        ..generation(owner, 5, 8)
    });
    let mut events = bench.submit_all(&both);
    let found = bench.read_to_end(&mut events);
    assert_eq!(found[0], vec![vec![Event::Failed(error)]; 3]);
    assert_eq!(found[1], expected_all(&both, 64)[1]);
    assert!(bench.all_memory_is_free());
}

#[test]
fn a_failing_copy_fails_one_candidate() {
    let mut bench = bench();
    bench.controls.copies_fail.set(true);
    let generation = Generation {
        candidates: 2,
        ..generation(1, 5, 8)
    };
    let mut events = bench.submit_all(std::slice::from_ref(&generation));
    let found = bench.read_to_end(&mut events).remove(0);
    assert_eq!(found[0], expected_events(&generation, 64));
    assert_eq!(
        found[1],
        [Event::Failed(Error::OutOfMemory("no copy".into()))]
    );
    assert!(bench.all_memory_is_free());
}

#[test]
fn a_batch_that_breaks_the_contract_is_an_internal_error() {
    // The prompt, its scores, a batch.
    for call in 0..3 {
        let mut bench = bench();
        bench.controls.cheat_at.set(Some(call));
        let mut events = bench.submit_all(&[Generation {
            prompt_scores: Some(0),
            candidates: 2,
            ..generation(1, 5, 20)
        }]);
        for found in bench.read_to_end(&mut events).remove(0) {
            let last = found.last();
            assert!(
                matches!(last, Some(Event::Failed(Error::Internal(_)))),
                "{last:?}"
            );
        }
    }
}

#[test]
fn a_lost_device_fails_everything_and_later_submits() {
    let mut bench = bench();
    let error = Error::DeviceLost("unplugged".into());
    let mut paused = bench.submit(&Generation {
        sampling: sampled(1),
        ..generation(1, 5, 20)
    });
    bench.controls.fail_at.borrow_mut().push((1, error.clone()));
    let mut waiting = bench.submit(&generation(2, 5, 20));
    assert_eq!(bench.settle(), Poll::Ready(Err(error.clone())));
    assert_eq!(
        read_all(&mut paused).pop(),
        Some(Event::Failed(error.clone()))
    );
    assert_eq!(read_all(&mut waiting), [Event::Failed(error.clone())]);
    assert_eq!(
        bench.handle.submit(vec![generation(3, 5, 20)]).unwrap_err(),
        error
    );
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.all_memory_is_free());
}

#[test]
fn dropping_the_engine_fails_everything() {
    let mut bench = bench();
    let mut running = bench.submit(&generation(1, 5, 20));
    let mut waiting = bench.submit(&generation(2, 5, 20));
    assert!(bench.step().is_pending());
    bench.run = None;
    let stopped = Event::Failed(Error::Internal("the engine was stopped".into()));
    assert_eq!(read_all(&mut running).pop(), Some(stopped.clone()));
    assert_eq!(read_all(&mut waiting), [stopped]);
    assert!(matches!(
        bench.handle.submit(vec![generation(3, 5, 20)]),
        Err(Error::Internal(_))
    ));
}

#[test]
fn prompts_that_cannot_run_are_refused() {
    let bench = bench();
    let fault_of = |generation: Generation| match bench.handle.submit(vec![generation]) {
        Err(Error::Request { fault, .. }) => fault,
        other => panic!("{other:?}"),
    };
    let empty = Generation {
        prompt: vec![].into(),
        ..generation(1, 1, 5)
    };
    assert_eq!(fault_of(empty), RequestFault::InvalidValue);
    let unknown = Generation {
        prompt: vec![1, 50].into(),
        ..generation(1, 1, 5)
    };
    assert_eq!(fault_of(unknown), RequestFault::OutOfRange);
    assert_eq!(
        fault_of(generation(1, 64, 1)),
        RequestFault::ContextLengthExceeded
    );
    assert_eq!(
        fault_of(generation(1, 65, 0)),
        RequestFault::ContextLengthExceeded
    );
    assert_eq!(bench.handle.active_generations(), 0);
}

#[test]
fn an_empty_request_is_an_internal_error() {
    let bench = bench();
    let none = Generation {
        candidates: 0,
        ..generation(1, 5, 5)
    };
    for request in [vec![], vec![generation(2, 5, 5), none]] {
        let submitted = bench.handle.submit(request);
        assert!(matches!(submitted, Err(Error::Internal(_))));
    }
    assert_eq!(bench.handle.active_generations(), 0);
}
