//! Scores of the prompt and of tokens: the calls of the model, and when scores are sent.

use super::*;

fn scored(prompt_tokens: usize, max_tokens: usize, candidates: u32) -> Generation {
    Generation {
        sampling: sampled(3),
        candidates,
        prompt_scores: Some(2),
        ..generation(4, prompt_tokens, max_tokens)
    }
}

/// Runs a request in a context of 64 tokens and returns the model's calls.
#[track_caller]
fn run(request: &[Generation]) -> Vec<(Kind, usize)> {
    let limits = EngineLimits {
        prefill_chunk_tokens: 8,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 16, 4), limits);
    let mut events = bench.submit_all(request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(request, 64));
    assert!(bench.all_memory_is_free());
    assert_eq!(bench.handle.active_generations(), 0);
    let calls = bench.calls();
    calls.iter().map(|call| (call.kind, call.fed)).collect()
}

#[test]
fn the_prompt_is_scored_in_chunks_and_its_last_token_fed() {
    for candidates in [1, 3] {
        let calls = run(&[scored(21, 5, candidates)]);
        assert_eq!(
            calls[..3],
            [(Kind::Score, 8), (Kind::Score, 8), (Kind::Score, 4)]
        );
        assert_eq!(calls[3], (Kind::Host, 1));
    }
}

#[test]
fn scoring_alone_does_not_feed_the_last_token() {
    for candidates in [1, 3] {
        let calls = run(&[scored(10, 0, candidates)]);
        assert_eq!(calls, [(Kind::Score, 8), (Kind::Score, 1)]);
    }
}

#[test]
fn a_scored_prompt_may_fill_the_context() {
    assert_eq!(run(&[scored(64, 0, 2)]).len(), 8);
    assert_eq!(run(&[scored(63, 1, 2)]).len(), 9);
}

#[test]
fn a_prompt_of_one_token_has_no_scores() {
    let nothing = Event::Prompt { scores: [].into() };
    for (max_tokens, candidates) in [(0, 1), (0, 2), (3, 1), (3, 2)] {
        let request = scored(1, max_tokens, candidates);
        assert_eq!(expected_events(&request, 64)[0], nothing);
        let calls = run(&[request]);
        assert_eq!(calls.is_empty(), max_tokens == 0);
    }
}

#[test]
fn greedy_tokens_are_scored_on_the_host() {
    let request = Generation {
        scores: Some(crate::sample::ScoreRequest::default()),
        ..generation(4, 5, 6)
    };
    let is_greedy = |kind: &Kind| matches!(kind, Kind::Greedy { .. });
    assert!(run(&[request]).iter().all(|(kind, _)| !is_greedy(kind)));
}

#[test]
fn scores_and_none_in_one_request() {
    let without = generation(7, 9, 4);
    run(&[scored(12, 4, 2), without, scored(1, 2, 1)]);
}
