//! Sequences of several requests in one batch: when they join, and that results do not change.

use super::*;

fn bench_of(max_batch: usize, limits: EngineLimits) -> Bench {
    let mut model = FakeModel::new(128, 128, 4);
    model.max_batch = max_batch;
    Bench::new(model, limits)
}

fn chunks_of(prefill_chunk_tokens: usize) -> EngineLimits {
    EngineLimits {
        prefill_chunk_tokens,
        ..EngineLimits::default()
    }
}

fn sampled_generation(owner: u32, prompt_tokens: usize, max_tokens: usize) -> Generation {
    Generation {
        sampling: sampled(i64::from(owner)),
        ..generation(owner, prompt_tokens, max_tokens)
    }
}

#[test]
fn requests_generate_together_and_leave_one_by_one() {
    let mut bench = bench_of(8, EngineLimits::default());
    let requests = [
        generation(1, 9, 30),
        sampled_generation(2, 20, 20),
        Generation {
            candidates: 2,
            ..sampled_generation(3, 6, 10)
        },
    ];
    let mut events: Vec<_> = requests
        .iter()
        .map(|request| bench.submit_all(std::slice::from_ref(request)).remove(0))
        .collect();
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(&requests, 128));
    let mut batches: Vec<Vec<u32>> = bench.calls().into_iter().map(|call| call.owners).collect();
    batches.dedup();
    for together in [&[1, 2, 3, 3][..], &[1, 2], &[1]] {
        assert!(batches.iter().any(|owners| owners == together));
    }
    assert!(bench.all_memory_is_free());
}

#[test]
fn a_prompt_delays_others_by_a_chunk_at_a_time() {
    for running in [sampled_generation(1, 5, 60), generation(1, 5, 60)] {
        let mut bench = bench_of(8, chunks_of(8));
        let mut events = bench.submit(&running);
        for _ in 0..3 {
            assert!(bench.step().is_pending());
        }
        let before = bench.calls().len();
        let long = sampled_generation(2, 80, 3);
        let mut others = bench.submit(&long);
        assert!(bench.settle().is_pending());
        let calls = &bench.calls()[before..];
        let feeds = calls
            .iter()
            .filter(|call| call.owners == [2] && call.fed > 1);
        assert_eq!(feeds.count(), 10);
        for pair in calls[..20].windows(2) {
            assert!(pair.iter().any(|call| call.owners.contains(&1)));
            assert!(
                pair.iter()
                    .all(|call| call.steps().is_none_or(|steps| steps == 1))
            );
        }
        assert_eq!(read_all(&mut events), expected_events(&running, 128));
        assert_eq!(read_all(&mut others), expected_events(&long, 128));
    }
}

#[test]
fn a_sequence_that_runs_ahead_is_joined_and_runs_ahead_again() {
    let mut bench = bench_of(8, EngineLimits::default());
    let long = generation(1, 5, 100);
    let mut events = bench.submit(&long);
    for _ in 0..3 {
        assert!(bench.step().is_pending());
    }
    let short = generation(2, 5, 6);
    let mut others = bench.submit(&short);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut events), expected_events(&long, 128));
    assert_eq!(read_all(&mut others), expected_events(&short, 128));
    let calls = bench.calls();
    let kinds: Vec<_> = calls.iter().map(|call| call.steps()).collect();
    // The prompt and two runs, the other prompt, five batches, runs again.
    let ahead = |steps: &[usize]| steps.iter().map(|&it| Some(it)).collect::<Vec<_>>();
    assert_eq!(kinds[..4], ahead(&[1, 2, 4, 1]));
    assert_eq!(kinds[4..9], [None; 5]);
    assert_eq!(kinds[9..], ahead(&[8, 16, 16, 16, 16, 16]));
}

#[test]
fn a_batch_is_filled_in_order_of_arrival() {
    let mut bench = bench_of(2, EngineLimits::default());
    let requests = [(1, 12), (2, 24), (3, 5), (4, 5)]
        .map(|(owner, max_tokens)| sampled_generation(owner, 6, max_tokens));
    let mut events = requests.each_ref().map(|request| bench.submit(request));
    assert!(bench.settle().is_pending());
    for (events, request) in events.iter_mut().zip(&requests) {
        assert_eq!(read_all(events), expected_events(request, 128));
    }
    let mut batches: Vec<Vec<u32>> = bench.calls().into_iter().map(|call| call.owners).collect();
    batches.dedup();
    assert_eq!(
        batches,
        [&[1][..], &[2], &[1, 2], &[3], &[2, 3], &[4], &[2, 4], &[2]]
    );
}

#[test]
fn a_joined_sequence_does_not_wait_again() {
    let limits = EngineLimits {
        max_queue: 1,
        ..EngineLimits::default()
    };
    let mut bench = bench_of(8, limits);
    let requests = [1, 2, 3, 4].map(|owner| sampled_generation(owner, 6, 40));
    let mut events = vec![];
    for request in &requests {
        events.push(bench.submit(request));
        for _ in 0..2 {
            assert!(bench.step().is_pending());
        }
    }
    assert!(bench.settle().is_pending());
    for (events, request) in events.iter_mut().zip(&requests) {
        assert_eq!(read_all(events), expected_events(request, 128));
    }
}

#[test]
fn a_row_with_invalid_logits_fails_alone() {
    let mut bench = bench_of(8, EngineLimits::default());
    let requests = [1, 2, 3].map(|owner| sampled_generation(owner, 6, 20));
    let whole = requests.each_ref().map(|it| expected_events(it, 128));
    let history = [requests[1].prompt.ids(), &ids_of(&whole[1])[..7]].concat();
    *bench.controls.poison.borrow_mut() = Poison::After(history);
    let mut events = requests.each_ref().map(|request| bench.submit(request));
    assert!(bench.settle().is_pending());
    let [first, failed, last] = events.each_mut().map(read_all);
    assert_eq!((&first, &last), (&whole[0], &whole[2]));
    assert_eq!(ids_of(&failed), ids_of(&whole[1])[..7]);
    let failure = Event::Failed(crate::Error::InvalidLogits { position: 7 });
    assert_eq!(failed.last(), Some(&failure));
}

#[test]
fn a_request_that_lacks_pages_is_not_overtaken_while_others_generate() {
    // Sixteen pages; the first holds eight at once, the second wants nine.
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), EngineLimits::default());
    let requests = [(1, 30, 20), (2, 36, 5), (3, 5, 5)]
        .map(|(owner, prompt, max)| sampled_generation(owner, prompt, max));
    let mut events = requests.each_ref().map(|request| bench.submit(request));
    assert!(bench.settle().is_pending());
    for (events, request) in events.iter_mut().zip(&requests) {
        assert_eq!(read_all(events), expected_events(request, 64));
    }
    let calls = bench.calls();
    let first_call = |owner| calls.iter().position(|call| call.owners.contains(&owner));
    assert!(first_call(2) < first_call(3));
    assert_eq!(first_call(2), Some(20), "once the first has ended");
}

#[test]
fn later_requests_go_first_while_nothing_can_generate() {
    let limits = EngineLimits {
        max_unread_events: 4,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), limits);
    let paused = generation(1, 30, 20);
    let wants_more = [generation(2, 8, 2), generation(3, 30, 34)];
    let mut events = bench.submit(&paused);
    let mut both = bench.submit_all(&wants_more);
    let small = generation(4, 5, 3);
    let mut others = bench.submit(&small);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut others), expected_events(&small, 64));
    let mut found = vec![];
    while found.len() < 21 {
        found.extend(read_all(&mut events));
        assert!(bench.settle().is_pending());
    }
    assert_eq!(found, expected_events(&paused, 64));
    assert_eq!(bench.read_to_end(&mut both), expected_all(&wants_more, 64));
    assert!(bench.all_memory_is_free());
}
