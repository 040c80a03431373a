//! Several prompts in one request: each equals a single request; the order in which they are fed.

use super::*;

fn prompts(count: u32, candidates: u32) -> Vec<Generation> {
    let prompt = |owner| Generation {
        sampling: sampled(11),
        candidates,
        ..generation(owner, 5 + owner as usize, 12 + owner as usize)
    };
    (0..count).map(prompt).collect()
}

fn bench_of(max_batch: usize, page_count: usize) -> Bench {
    let mut model = FakeModel::new(64, page_count, 4);
    model.max_batch = max_batch;
    Bench::new(model, EngineLimits::default())
}

#[test]
fn each_is_what_it_would_be_alone() {
    for (max_batch, page_count) in [(1, 64), (3, 64), (8, 64), (8, 16)] {
        for candidates in [1, 3] {
            let request = prompts(6, candidates);
            let mut bench = bench_of(max_batch, page_count);
            let mut events = bench.submit_all(&request);
            assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
            assert!(bench.all_memory_is_free());
            assert_eq!(bench.handle.active_generations(), 0);
        }
    }
}

#[test]
fn the_position_in_the_array_does_not_matter() {
    let same = vec![prompts(1, 1).remove(0); 3];
    let mut bench = bench_of(2, 64);
    let mut events = bench.submit_all(&same);
    let found = bench.read_to_end(&mut events);
    let mut alone = bench.submit(&same[0]);
    assert!(bench.settle().is_pending());
    assert_eq!(found, vec![vec![read_all(&mut alone)]; 3]);
}

#[test]
fn the_first_token_does_not_wait_for_later_prompts() {
    let mut bench = bench_of(4, 64);
    let mut events = bench.submit_all(&prompts(10, 1));
    let mut first = vec![];
    while first.is_empty() {
        assert!(bench.step().is_pending());
        first = read_all(&mut events[0][0]);
    }
    assert_eq!(bench.calls().len(), 1);
}

#[test]
fn prompts_are_fed_until_the_batch_is_full_and_when_it_is_not() {
    let mut bench = bench_of(3, 64);
    let request = prompts(5, 1);
    let mut events = bench.submit_all(&request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
    let calls = bench.calls();
    let begin: Vec<_> = calls[..4]
        .iter()
        .map(|call| (call.kind, &*call.owners))
        .collect();
    assert_eq!(
        begin,
        [
            (Kind::Host, &[0][..]),
            (Kind::Host, &[1]),
            (Kind::Host, &[2]),
            (Kind::Host, &[0, 1, 2]),
        ]
    );
    // Prompt 0 ends after 11 batches; only then prompt 3 is fed.
    assert_eq!((calls[14].kind, &*calls[14].owners), (Kind::Host, &[3][..]));
    assert_eq!(calls[15].owners, [1, 2, 3]);
}

#[test]
fn candidates_come_before_further_prompts() {
    let mut bench = bench_of(4, 64);
    let request = prompts(3, 3);
    let mut events = bench.submit_all(&request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
    let calls = bench.calls();
    assert_eq!(calls[1].owners, [1], "the batch has one place left");
    assert_eq!(calls[2].owners, [0, 0, 0, 1]);
}

#[test]
fn some_prompts_may_request_no_tokens() {
    let mut bench = bench_of(4, 64);
    let mut request = prompts(3, 2);
    request[1].max_tokens = 0;
    let mut events = bench.submit_all(&request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
    assert!(bench.calls().iter().all(|call| call.owners[0] != 1));
}

#[test]
fn candidates_that_lack_pages_come_before_further_prompts() {
    let mut bench = bench_of(4, 16);
    // Each of the first prompt's candidates may need all pages: they run one by one.
    let first = Generation {
        sampling: sampled(11),
        candidates: 3,
        ..generation(1, 30, 34)
    };
    let request = [first, generation(2, 4, 4)];
    let mut events = bench.submit_all(&request);
    assert_eq!(bench.read_to_end(&mut events), expected_all(&request, 64));
    let calls = bench.calls();
    let second = calls.iter().position(|call| call.owners.contains(&2));
    // One call for the first prompt, and 33 for each of two candidates.
    assert_eq!(second, Some(1 + 2 * 33));
}

#[test]
fn a_prompt_that_holds_pages_continues_while_candidates_lack_them() {
    let limits = EngineLimits {
        prefill_chunk_tokens: 4,
        max_unread_events: 2,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(FakeModel::new(64, 9, 4), limits);
    // Two pages of prompt, up to four of its own for each candidate.
    let first = Generation {
        candidates: 2,
        prompt_scores: Some(0),
        ..generation(1, 8, 17)
    };
    // Up to seven pages: all the others.
    let request = [first, generation(2, 24, 5)];
    let mut events = bench.submit_all(&request);
    // The first prompt's scores fill the channels of its readers, so that the second prompt begins.
    for _ in 0..7 {
        assert!(bench.step().is_pending());
    }
    assert_eq!(bench.handle.free_pages(), 2);
    assert_eq!(bench.calls().last().unwrap().owners, [2]);
    // Now they could start, but with one page less neither prompt's candidates could end.
    let expected = expected_all(&request, 36);
    for (events, expected) in events[0].iter_mut().zip(&expected[0]) {
        assert_eq!(read(events, 1), expected[..1]);
    }
    let found = bench.read_to_end(&mut events);
    for (found, expected) in found[0].iter().zip(&expected[0]) {
        assert_eq!(found, &expected[1..]);
    }
    assert_eq!(found[1], expected[1]);
    assert!(bench.all_memory_is_free());
}
