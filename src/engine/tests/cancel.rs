//! Dropping the events ends a candidate within one step and frees its memory; other candidates are
//! not affected.

use super::*;

fn bench() -> Bench {
    let limits = EngineLimits {
        prefill_chunk_tokens: 8,
        max_queue: 2,
        ..EngineLimits::default()
    };
    Bench::new(FakeModel::new(256, 64, 4), limits)
}

#[test]
fn in_the_middle_of_the_prompt() {
    let mut bench = bench();
    let events = bench.submit(&generation(1, 100, 50));
    for _ in 0..3 {
        assert!(bench.step().is_pending());
    }
    assert_eq!(bench.calls().len(), 3);
    assert_eq!(bench.handle.free_pages(), 64 - 6);
    drop(events);
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.calls().len(), 3);
    assert!(bench.all_memory_is_free());
}

#[test]
fn in_the_middle_of_the_answer() {
    let mut bench = bench();
    let other = generation(2, 20, 30);
    let mut cancelled = bench.submit(&generation(1, 20, 200));
    let mut events = bench.submit(&other);
    for _ in 0..4 {
        assert!(bench.step().is_pending());
    }
    assert!(!read_all(&mut cancelled).is_empty());
    drop(cancelled);
    let calls = bench.calls().len();
    assert!(bench.settle().is_pending());
    assert!(bench.calls()[calls..].iter().all(|call| call.owners == [2]));
    assert_eq!(read_all(&mut events), expected_events(&other, 256));
    assert!(bench.all_memory_is_free());
}

#[test]
fn while_the_model_computes() {
    let mut bench = bench();
    bench.controls.suspensions.set(3);
    let events = bench.submit(&generation(1, 20, 200));
    for _ in 0..6 {
        assert!(bench.step().is_pending());
    }
    let calls = bench.calls().len();
    drop(events);
    assert!(bench.settle().is_pending());
    assert!(
        bench.calls().len() <= calls + 1,
        "at most the current call ends"
    );
    assert!(bench.all_memory_is_free());
}

#[test]
fn while_it_waits() {
    let mut bench = bench();
    let first = generation(1, 20, 10);
    let mut events = bench.submit(&first);
    // Three more run at once, and two wait.
    let waiting = [2, 3, 5, 6, 7].map(|owner| bench.submit(&generation(owner, 20, 10)));
    assert!(bench.handle.submit(vec![generation(4, 20, 10)]).is_err());
    assert_eq!(bench.handle.active_generations(), 6);
    drop(waiting);
    assert_eq!(bench.handle.active_generations(), 1);
    let mut last = bench.submit(&generation(4, 20, 10));
    assert!(bench.settle().is_pending());
    assert!(
        bench
            .calls()
            .iter()
            .all(|call| call.owners.iter().all(|owner| [1, 4].contains(owner)))
    );
    assert_eq!(read_all(&mut events), expected_events(&first, 256));
    assert_eq!(
        read_all(&mut last),
        expected_events(&generation(4, 20, 10), 256)
    );
}

#[test]
fn while_it_pauses_it_wakes_the_engine() {
    let mut bench = bench();
    let paused = bench.submit(&generation(1, 1, 255));
    assert!(bench.settle().is_pending());
    let paused_too = bench.submit(&Generation {
        sampling: sampled(1),
        ..generation(2, 1, 255)
    });
    assert!(bench.settle().is_pending());
    drop((paused, paused_too));
    assert!(bench.settle().is_pending());
    assert!(bench.all_memory_is_free());
}

/// A request of two prompts, with candidates 0 to 2 each.
fn several() -> [Generation; 2] {
    [1, 2].map(|owner| Generation {
        sampling: sampled(7),
        candidates: 3,
        ..generation(owner, 22, 30)
    })
}

/// Reads the remaining candidates to the end and compares them.
fn expect_the_rest(bench: &mut Bench, kept: Vec<(usize, usize, Events)>) {
    let expected = expected_all(&several(), 256);
    let (places, events): (Vec<_>, Vec<_>) =
        kept.into_iter().map(|(p, c, it)| ((p, c), it)).unzip();
    let found = bench.read_to_end(&mut [events]).remove(0);
    for ((prompt, candidate), found) in places.into_iter().zip(found) {
        // Events that were read before are missing.
        let whole = &expected[prompt][candidate];
        assert!(!found.is_empty());
        assert_eq!(found, whole[whole.len() - found.len()..]);
    }
    assert!(bench.all_memory_is_free());
    assert_eq!(bench.handle.active_generations(), 0);
}

/// All events with their prompt and candidate.
fn placed(events: Vec<Vec<Events>>) -> Vec<(usize, usize, Events)> {
    let prompts = events.into_iter().enumerate();
    let all = prompts.flat_map(|(prompt, events)| {
        let candidates = events.into_iter().enumerate();
        candidates.map(move |(candidate, events)| (prompt, candidate, events))
    });
    all.collect()
}

#[test]
fn whole_requests_in_every_phase() {
    let mut phases = 0;
    // Prompts take three steps each, then come batches; the last steps are past the end.
    for steps in 0..90 {
        for suspensions in [0, 2] {
            let mut bench = bench();
            bench.controls.suspensions.set(suspensions);
            let mut events = bench.submit_all(&several());
            for _ in 0..steps {
                assert!(bench.step().is_pending());
            }
            let calls = bench.calls().len();
            phases = phases.max(calls);
            for events in events.iter_mut().flatten() {
                read_all(events);
            }
            drop(events);
            assert_eq!(bench.handle.active_generations(), 0);
            assert!(bench.settle().is_pending());
            assert!(bench.calls().len() <= calls + 1, "the current call may end");
            assert!(bench.all_memory_is_free());
        }
    }
    assert!(phases > 50, "every phase was covered");
}

#[test]
fn half_of_the_candidates_in_every_phase() {
    // All of them run for 39 steps.
    for steps in 0..36 {
        let mut bench = bench();
        let mut kept = placed(bench.submit_all(&several()));
        for _ in 0..steps {
            assert!(bench.step().is_pending());
        }
        let free = bench.handle.free_pages();
        kept.retain(|(prompt, candidate, _)| (prompt + candidate) % 2 == 1);
        assert_eq!(bench.handle.active_generations(), 3);
        let pages_held = free < 64;
        assert!(bench.step().is_pending());
        if pages_held && steps > 20 {
            assert!(bench.handle.free_pages() > free, "free within a step");
        }
        expect_the_rest(&mut bench, kept);
    }
}

#[test]
fn a_prompt_nobody_waits_for_is_not_fed() {
    let mut bench = bench();
    let mut events = bench.submit_all(&several());
    drop(events.remove(0));
    let kept = placed(events).into_iter();
    let kept = kept
        .map(|(_, candidate, events)| (1, candidate, events))
        .collect();
    expect_the_rest(&mut bench, kept);
    assert!(bench.calls().iter().all(|call| call.owners[0] == 2));
}
