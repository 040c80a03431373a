//! Several candidates of one prompt: each equals a single request, and the prompt is fed once.

use super::*;

fn request(prompt_tokens: usize, max_tokens: usize, candidates: u32) -> Generation {
    Generation {
        sampling: sampled(11),
        candidates,
        ..generation(5, prompt_tokens, max_tokens)
    }
}

fn limits(prefill_chunk_tokens: usize) -> EngineLimits {
    EngineLimits {
        prefill_chunk_tokens,
        ..EngineLimits::default()
    }
}

/// Runs one prompt and compares the events of all candidates.
#[track_caller]
fn run(bench: &mut Bench, request: &Generation) {
    let mut events = bench.submit_all(std::slice::from_ref(request));
    assert_eq!(
        bench.handle.active_generations(),
        request.candidates as usize
    );
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(std::slice::from_ref(request), 64));
    assert_eq!(bench.handle.active_generations(), 0);
    assert!(bench.all_memory_is_free());
}

#[test]
fn each_is_what_it_would_be_alone() {
    for sampling in [greedy(), sampled(1), sampled(-3)] {
        for (prompt_tokens, chunk, page_tokens, candidates) in
            [(1, 9, 4, 2), (7, 3, 4, 5), (8, 3, 4, 9), (30, 30, 1, 3)]
        {
            let request = Generation {
                sampling: sampling.clone(),
                ..request(prompt_tokens, 21, candidates)
            };
            let model = FakeModel::new(64, 512 / page_tokens, page_tokens);
            run(&mut Bench::new(model, limits(chunk)), &request);
        }
    }
}

#[test]
fn the_prompt_is_fed_once() {
    for (prompt_tokens, copies) in [(37, 4), (40, 0)] {
        let mut model = FakeModel::new(64, 64, 4);
        model.max_batch = 5;
        let mut bench = Bench::new(model, limits(8));
        run(&mut bench, &request(prompt_tokens, 10, 5));
        let calls = bench.calls();
        let (prompt, batches): (Vec<_>, Vec<_>) =
            calls.iter().partition(|call| call.owners.len() == 1);
        let fed: usize = prompt.iter().map(|call| call.fed).sum();
        assert_eq!(fed, prompt_tokens);
        assert_eq!(prompt.len(), 5);
        assert_eq!(batches.len(), 9, "the last token is not fed");
        assert!(batches.iter().all(|call| call.owners.len() == 5));
        // The first candidate writes in the prompt's own last page.
        assert_eq!(bench.controls.copies.get(), copies);
    }
}

#[test]
fn full_pages_are_shared() {
    let mut model = FakeModel::new(64, 64, 4);
    model.max_batch = 6;
    let mut bench = Bench::new(model, EngineLimits::default());
    let mut events = bench.submit_all(&[request(38, 20, 6)]);
    // The prompt, six starts and two batches: 40 tokens each.
    for _ in 0..9 {
        assert!(bench.step().is_pending());
    }
    assert_eq!(bench.handle.free_pages(), 64 - 9 - 6);
    for events in events.iter_mut().flatten() {
        assert_eq!(read_all(events).len(), 3);
    }
}

#[test]
fn a_single_candidate_takes_the_pages_over() {
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), limits(8));
    run(&mut bench, &request(37, 10, 1));
    assert_eq!(bench.controls.copies.get(), 0);
    assert!(bench.calls().iter().all(|call| call.owners.len() == 1));
}

#[test]
fn one_token_each_needs_no_pages_of_their_own() {
    // Ten pages hold the prompt exactly.
    let mut bench = Bench::new(FakeModel::new(64, 10, 4), EngineLimits::default());
    run(&mut bench, &request(38, 1, 20));
    assert_eq!(bench.calls().len(), 1);
    assert_eq!(bench.controls.copies.get(), 0);
}

#[test]
fn one_token_each_does_not_wait_for_a_page() {
    let limits = EngineLimits {
        max_unread_events: 24,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), limits);
    // It pauses before its last token and holds all six pages that it needs.
    let _paused = bench.submit(&generation(1, 1, 24));
    assert!(bench.settle().is_pending());
    assert_eq!(bench.handle.free_pages(), 10);
    // The prompt fills the other ten pages.
    let request = [request(40, 1, 3)];
    let mut events = bench.submit_all(&request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
}

#[test]
fn candidates_run_in_turns_if_pages_are_few() {
    // A candidate may need all 16 pages, so that two at a time are the exception.
    for (prompt_tokens, page_count) in [(30, 16), (32, 16), (30, 17), (30, 24)] {
        let mut bench = Bench::new(FakeModel::new(64, page_count, 4), limits(7));
        run(&mut bench, &request(prompt_tokens, 34, 7));
        let calls = bench.calls();
        let fed = calls.iter().filter(|call| call.fed > 1);
        assert_eq!(fed.map(|call| call.fed).sum::<usize>(), prompt_tokens);
    }
}

#[test]
fn the_last_remaining_candidate_runs_ahead() {
    let mut bench = Bench::new(FakeModel::new(64, 64, 4), EngineLimits::default());
    let request = Generation {
        candidates: 2,
        ..generation(5, 9, 12)
    };
    let mut events = bench.submit_all(std::slice::from_ref(&request)).remove(0);
    for _ in 0..6 {
        assert!(bench.step().is_pending());
    }
    let left = events.remove(1);
    drop(events);
    let found = bench.read_to_end(&mut [vec![left]]);
    assert_eq!(found[0][0], expected_events(&request, 64));
    let calls = bench.calls();
    let steps: Vec<_> = calls[1..].iter().map(Call::steps).collect();
    assert_eq!(
        steps,
        [None, None, None, Some(1), Some(2), Some(4), Some(1)]
    );
}

/// The device chooses several tokens at a time for all sampled candidates, unless they ask for more
/// scores than the device reports.
#[test]
fn a_device_runs_a_batch_ahead() {
    let mut model = FakeModel::new(64, 64, 4);
    model.samples = true;
    let mut bench = Bench::new(model, limits(8));
    let request = Generation {
        sampling: sampled(7),
        ..request(5, 20, 3)
    };
    let mut events = bench.submit_all(std::slice::from_ref(&request));
    let found = bench.read_to_end(&mut events);
    assert_eq!(found, expected_all(std::slice::from_ref(&request), 64));
    let calls = bench.calls();
    let steps: Vec<_> = calls.iter().filter_map(Call::steps).collect();
    assert_eq!(steps.iter().sum::<usize>(), 19, "{steps:?}");
    assert!(steps.len() < 8, "{steps:?}");
    assert!(calls[1..].iter().all(|call| call.steps().is_some()));

    let asks_much = Generation {
        scores: Some(crate::sample::ScoreRequest {
            top: 3,
            ..Default::default()
        }),
        ..request
    };
    let before = bench.calls().len();
    let mut events = bench.submit_all(&[asks_much]);
    bench.read_to_end(&mut events);
    let steps = bench.calls()[before..]
        .iter()
        .filter_map(Call::steps)
        .count();
    assert_eq!(steps, 0);
    assert!(bench.all_memory_is_free());
}
