//! A failing step fails its choice alone; a lost device fails everything; bad input is refused.

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
        *bench.controls.fail_at.borrow_mut() = Some((call, error.clone()));
        let failing = Generation {
            sampling,
            ..generation(1, 5, 20)
        };
        let other = generation(2, 5, 20);
        let (mut events, mut others) = (bench.submit(&failing), bench.submit(&other));
        assert!(bench.settle().is_pending());
        let found = read_all(&mut events);
        let sent = found.len() - 1;
        assert_eq!(found[..sent], expected_events(&failing, 64)[..sent]);
        assert_eq!(found[sent], Event::Failed(error));
        assert_eq!(read_all(&mut others), expected_events(&other, 64));
        assert!(bench.all_pages_are_free());
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
fn invalid_logits_name_the_position() {
    let mut bench = bench();
    bench.controls.nan_at.set(Some(4));
    let mut events = bench.submit(&Generation {
        sampling: sampled(1),
        ..generation(1, 5, 20)
    });
    assert!(bench.settle().is_pending());
    let found = read_all(&mut events);
    assert_eq!(found.len(), 5);
    assert_eq!(
        found[4],
        Event::Failed(Error::InvalidLogits { position: 4 })
    );
}

#[test]
fn a_lost_device_fails_everything_and_later_submits() {
    let mut bench = bench();
    let error = Error::DeviceLost("unplugged".into());
    let mut paused = bench.submit(&Generation {
        sampling: sampled(1),
        ..generation(1, 5, 20)
    });
    *bench.controls.fail_at.borrow_mut() = Some((2, error.clone()));
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
    assert!(bench.all_pages_are_free());
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
        prompt: vec![],
        ..generation(1, 1, 5)
    };
    assert_eq!(fault_of(empty), RequestFault::InvalidValue);
    let unknown = Generation {
        prompt: vec![1, 50],
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
