//! A model with recurrent layers: states are copied where sequences diverge, snapshots are taken at page
//! ends, and slots are scarce. The fake model fails a call whose state is not that of the history.

use super::*;
use crate::Error;

const PAGE_TOKENS: usize = 4;

fn model(state_slots: usize) -> FakeModel {
    FakeModel::new(64, 64, PAGE_TOKENS).with_states(state_slots)
}

fn bench(state_slots: usize) -> Bench {
    let limits = EngineLimits {
        prefill_chunk_tokens: 8,
        ..EngineLimits::default()
    };
    Bench::new(model(state_slots), limits)
}

/// Runs prompts as one request; returns the cached positions of each.
#[track_caller]
fn run(bench: &mut Bench, request: &[Generation]) -> Vec<usize> {
    let mut events = bench.submit_all(request);
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(request, 64));
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.all_memory_is_free());
    let cached = events.iter().map(|it| it[0].cached_prompt_tokens().get());
    cached.collect()
}

fn of_owner(owner: u32, prompt_tokens: usize, candidates: u32) -> Generation {
    Generation {
        sampling: sampled(7),
        candidates,
        ..generation(owner, prompt_tokens, 9)
    }
}

#[test]
fn a_stop_inside_a_run_ahead_leaves_nothing_behind() {
    let mut request = generation(2, 5, 50);
    let ids = ids_of(&expected_events(&request, 64));
    // The eleventh token is inside a run of eight (tokens 8 to 15).
    request.stop_ids = vec![ids[10]];
    let mut bench = bench(2);
    for _ in 0..3 {
        run(&mut bench, std::slice::from_ref(&request));
        // Another sequence gets the slot whose state had run past the stop.
        run(&mut bench, &[of_owner(3, 7, 1)]);
    }
    let steps: Vec<_> = bench.calls().iter().filter_map(Call::steps).collect();
    assert!(steps.contains(&8), "{steps:?}");
}

#[test]
fn a_device_runs_a_batch_ahead() {
    let mut model = model(5);
    model.samples = true;
    let mut bench = Bench::new(model, EngineLimits::default());
    let mut request = of_owner(1, 6, 4);
    let ids = ids_of(&expected(&request, 2, 64, &Poison::None));
    request.stop_ids = vec![ids[4]];
    run(&mut bench, &[request]);
    assert!(bench.calls().iter().any(|call| call.steps() > Some(2)));
}

#[test]
fn candidates_start_from_copies_of_their_prompts_state() {
    for (prompt_tokens, candidates) in [(1, 2), (7, 3), (8, 4), (30, 3)] {
        let mut bench = bench(8);
        run(&mut bench, &[of_owner(5, prompt_tokens, candidates)]);
        let snapshots = (prompt_tokens - 1) / PAGE_TOKENS;
        let snapshots = snapshots.div_ceil(2);
        let copies = bench.controls.state_copies.get() - snapshots;
        assert_eq!(
            copies,
            candidates as usize - 1,
            "the last one takes the prompt's state over"
        );
    }
}

#[test]
fn candidates_and_prompts_wait_for_slots_but_none_forever() {
    for slots in [2, 3, 4] {
        let requests = [1, 2, 3].map(|owner| of_owner(owner, 10, 4));
        let mut bench = bench(slots);
        run(&mut bench, &requests);
        let mut events = requests
            .each_ref()
            .map(|it| bench.submit_all(std::slice::from_ref(it)).remove(0));
        let found = bench.read_to_end(&mut events);
        for (found, request) in found.iter().zip(&requests) {
            assert_eq!(found, &expected_all(std::slice::from_ref(request), 64)[0]);
        }
        assert!(bench.all_memory_is_free());
    }
}

#[test]
fn a_prefix_is_reused_from_its_last_snapshot() {
    let mut bench = bench(8);
    // Chunks of 8: snapshots after 8, 16, 24 and, on the last page, 28 tokens.
    assert_eq!(run(&mut bench, &[of_owner(5, 30, 1)]), [0]);
    assert_eq!(run(&mut bench, &[of_owner(5, 30, 1)]), [28]);
    assert_eq!(run(&mut bench, &[of_owner(5, 45, 2)]), [28]);
    // Pages up to 20 are cached, but there is no snapshot at 20.
    assert_eq!(run(&mut bench, &[of_owner(5, 23, 1)]), [16]);
    // Now there is one.
    assert_eq!(run(&mut bench, &[of_owner(5, 23, 1)]), [20]);
    assert_eq!(run(&mut bench, &[of_owner(6, 23, 1)]), [0]);
}

#[test]
fn snapshots_are_dropped_when_slots_are_needed() {
    let mut bench = bench(3);
    run(&mut bench, &[of_owner(5, 30, 1)]);
    // Two snapshots remain besides the slot that ran. Both are dropped.
    run(&mut bench, &[of_owner(6, 3, 3)]);
    assert_eq!(run(&mut bench, &[of_owner(5, 30, 1)]), [0]);
    assert_eq!(run(&mut bench, &[of_owner(5, 30, 1)]), [28]);
}

/// The only snapshot is in the only slot that is left: the sequence continues on it.
#[test]
fn a_sequence_may_take_the_slot_of_its_own_snapshot() {
    let mut bench = bench(2);
    run(&mut bench, &[of_owner(5, 30, 1)]);
    let paused = Generation {
        sampling: sampled(1),
        ..generation(1, 3, 3)
    };
    let mut paused_events = bench.submit(&paused);
    assert!(bench.step().is_pending());
    let mut events = bench.submit_all(&[of_owner(5, 30, 1)]);
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(&[of_owner(5, 30, 1)], 64));
    assert_eq!(events[0][0].cached_prompt_tokens().get(), 28);
    assert_eq!(read_all(&mut paused_events), expected_events(&paused, 64));
    assert!(bench.all_memory_is_free());
}

#[test]
fn cancelled_in_every_phase() {
    for steps in 0..24 {
        let mut bench = bench(4);
        let requests = [of_owner(5, 20, 3), of_owner(5, 30, 2)];
        let mut events = bench.submit_all(&requests);
        let other = of_owner(5, 17, 1);
        let mut others = bench.submit_all(std::slice::from_ref(&other));
        for _ in 0..steps {
            assert!(bench.step().is_pending());
        }
        events.pop();
        events[0].remove(1);
        let found = bench.read_to_end(&mut others);
        assert_eq!(found, expected_all(&[other], 64));
        let found = bench.read_to_end(&mut events).remove(0);
        for (found, candidate) in found.iter().zip([0, 2]) {
            let whole = expected(&requests[0], candidate, 64, &Poison::None);
            assert_eq!(found, &whole);
        }
        assert!(bench.all_memory_is_free());
    }
}

/// After a call that fails, states are undefined: its sequences fail, and others continue.
#[test]
fn a_failed_batch_is_not_retried() {
    let error = Error::OutOfMemory("no more".into());
    let mut bench = bench(8);
    // The prompt, two chunks; then three starts and batches of three.
    bench.controls.fail_at.borrow_mut().push((4, error.clone()));
    let request = of_owner(5, 12, 3);
    let mut events = bench.submit_all(std::slice::from_ref(&request));
    let found = bench.read_to_end(&mut events).remove(0);
    for (found, candidate) in found.iter().zip(0..) {
        let (last, told) = found.split_last().unwrap();
        assert_eq!(last, &Event::Failed(error.clone()));
        let whole = expected(&request, candidate, 64, &Poison::None);
        assert_eq!(told, &whole[..told.len()]);
        assert!(!told.is_empty());
    }
    assert!(bench.all_memory_is_free());
    run(&mut bench, &[request]);
}

#[test]
fn a_failing_copy_fails_one_candidate() {
    let mut bench = bench(8);
    bench.controls.copies_fail.set(true);
    let request = of_owner(5, 3, 2);
    let mut events = bench.submit_all(std::slice::from_ref(&request));
    let found = bench.read_to_end(&mut events).remove(0);
    let failed = found
        .iter()
        .filter(|it| matches!(it[..], [Event::Failed(_)]));
    assert_eq!(failed.count(), 1);
    assert!(bench.all_memory_is_free());
}
