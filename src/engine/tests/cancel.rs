//! Dropping the events ends a choice within a step and frees its pages; nobody else notices.

use super::*;

fn bench() -> Bench {
    let limits = EngineLimits {
        prefill_chunk_tokens: 10,
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
    assert_eq!(bench.handle.free_pages(), 64 - 8);
    drop(events);
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.calls().len(), 3);
    assert!(bench.all_pages_are_free());
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
    assert!(bench.calls()[calls..].iter().all(|call| call.owner == 2));
    assert_eq!(read_all(&mut events), expected_events(&other, 256));
    assert!(bench.all_pages_are_free());
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
        "at most the call under way ends"
    );
    assert!(bench.all_pages_are_free());
}

#[test]
fn while_it_waits() {
    let mut bench = bench();
    let first = generation(1, 20, 10);
    let mut events = bench.submit(&first);
    let waiting = [
        bench.submit(&generation(2, 20, 10)),
        bench.submit(&generation(3, 20, 10)),
    ];
    assert!(bench.handle.submit(vec![generation(4, 20, 10)]).is_err());
    assert_eq!(bench.handle.active_generations(), 3);
    drop(waiting);
    assert_eq!(bench.handle.active_generations(), 1);
    let mut last = bench.submit(&generation(4, 20, 10));
    assert!(bench.settle().is_pending());
    assert!(
        bench
            .calls()
            .iter()
            .all(|call| call.owner == 1 || call.owner == 4)
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
    assert!(bench.all_pages_are_free());
}
