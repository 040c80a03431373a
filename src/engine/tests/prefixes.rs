//! Cached prompts: what is fed again, what is evicted, and that results equal those of a prompt fed
//! from its beginning.

use super::*;

const PAGE_TOKENS: usize = 8;

/// Steps of up to three tokens round differently.
fn model(page_count: usize) -> FakeModel {
    let mut model = FakeModel::new(page_count * PAGE_TOKENS, page_count, PAGE_TOKENS);
    model.few_tokens = 3;
    model
}

/// A prompt of `shared` tokens that all prompts have, and `own` tokens that begin with `first`.
fn prompt(shared: usize, first: u32, own: usize) -> Vec<u32> {
    let begin = (0..shared as u32).map(|i| (i * i + 3) % 50);
    begin
        .chain((0..own as u32).map(|i| (first + i) % 50))
        .collect()
}

fn with_prompt(prompt: Vec<u32>, max_tokens: usize) -> Generation {
    Generation {
        prompt: prompt.into(),
        ..generation(0, 1, max_tokens)
    }
}

fn cached(events: &Events) -> usize {
    events.cached_prompt_tokens().get()
}

/// Runs a request to its end; returns its events, and how many tokens of its prompt were fed and
/// cached.
fn run(bench: &mut Bench, request: &Generation) -> (Vec<Event>, usize, usize) {
    let before = bench.calls().len();
    let mut events = bench.submit(request);
    assert!(bench.settle().is_pending());
    let found = read_all(&mut events);
    assert!(bench.all_memory_is_free());
    let fed: usize = bench.calls()[before..].iter().map(|call| call.fed).sum();
    // Each chosen token is fed, except the first one and the last one of a run ahead.
    let generated: usize = bench.calls()[before..]
        .iter()
        .skip_while(|call| matches!(call.kind, Kind::Prefill | Kind::Score))
        .skip(1)
        .map(|call| call.fed)
        .sum();
    (found, fed - generated, cached(&events))
}

#[test]
fn a_repeated_prefix_of_a_thousand_tokens_is_hardly_fed_again() {
    let mut model = FakeModel::new(4096, 64, 64);
    model.few_tokens = 8;
    let mut bench = Bench::new(model, EngineLimits::default());
    let (_, first, cached) = run(&mut bench, &with_prompt(prompt(1000, 1, 20), 5));
    assert_eq!((first, cached), (1020, 0));
    let (_, second, cached) = run(&mut bench, &with_prompt(prompt(1000, 2, 20), 5));
    assert_eq!((second, cached), (60, 960));
    assert!(second * 10 <= first, "at least 90 % less");
    // The same prompt again: at least one token is fed.
    let (_, third, cached) = run(&mut bench, &with_prompt(prompt(960, 0, 0), 5));
    assert_eq!((third, cached), (64, 896));
}

/// The results equal those of a prompt fed from its beginning, for all ways to cut it.
#[test]
fn cached_pages_do_not_change_results() {
    for chunk in [8, 16, 40, 512] {
        let limits = EngineLimits {
            prefill_chunk_tokens: chunk,
            ..EngineLimits::default()
        };
        let mut bench = Bench::new(model(24), limits.clone());
        let mut cached_tokens = 0;
        for (at, shared) in [30, 64, 7, 33, 90, 63, 65, 91].into_iter().enumerate() {
            for own in [1, 2, 3, 4, 7, 8, 9, 40] {
                for sampling in [greedy(), sampled(5)] {
                    let request = Generation {
                        sampling,
                        ..with_prompt(prompt(shared, at as u32 % 3, own), 12)
                    };
                    let (found, fed, cached) = run(&mut bench, &request);
                    assert_eq!(fed + cached, shared + own);
                    cached_tokens += cached;
                    let expected = alone(model(24), limits.clone(), &[request]).remove(0);
                    assert_eq!(found, expected[0]);
                }
            }
        }
        assert!(cached_tokens > 4000, "{cached_tokens}");
    }
}

#[test]
fn small_steps_would_change_results() {
    // Otherwise the test above could not fail.
    let [few, none] = [3, 0].map(|few_tokens| {
        let mut model = model(24);
        model.few_tokens = few_tokens;
        alone(model, EngineLimits::default(), &[generation(1, 10, 12)])
    });
    assert_ne!(few, none);
}

#[test]
fn cached_pages_are_evicted_when_pages_are_needed() {
    let mut bench = Bench::new(model(16), EngineLimits::default());
    let old = with_prompt(prompt(0, 7, 48), 4);
    let young = with_prompt(prompt(0, 9, 48), 4);
    for request in [&old, &young] {
        assert_eq!(run(&mut bench, request).2, 0);
    }
    // Six pages each are cached, four pages are not. Five more are needed.
    run(&mut bench, &with_prompt(prompt(0, 11, 70), 3));
    assert_eq!(
        run(&mut bench, &young).2,
        40,
        "the recent one is still cached"
    );
    assert!(
        run(&mut bench, &old).2 < 40,
        "the end of the old one was evicted"
    );
    // This request needs all pages.
    let whole = with_prompt(prompt(0, 13, 100), 28);
    let (found, ..) = run(&mut bench, &whole);
    assert_eq!(
        found,
        alone(model(16), EngineLimits::default(), &[whole])[0][0]
    );
    assert_eq!(run(&mut bench, &young).2, 0);
}

#[test]
fn scored_prompts_are_fed_completely() {
    let mut bench = Bench::new(model(16), EngineLimits::default());
    let plain = with_prompt(prompt(50, 1, 1), 4);
    let scored = Generation {
        prompt_scores: Some(1),
        ..plain.clone()
    };
    run(&mut bench, &plain);
    let (found, fed, cached) = run(&mut bench, &scored);
    assert_eq!((fed, cached), (51, 0));
    assert_eq!(
        found,
        alone(
            model(16),
            EngineLimits::default(),
            std::slice::from_ref(&scored)
        )[0][0]
    );
    // Its pages serve others, except the page that its last token fills.
    let mut bench = Bench::new(model(16), EngineLimits::default());
    let scored = Generation {
        prompt: prompt(48, 0, 0).into(),
        ..scored
    };
    run(&mut bench, &scored);
    assert_eq!(run(&mut bench, &with_prompt(prompt(48, 1, 9), 4)).2, 40);
}

/// Generated tokens were computed by other kernels than a prompt.
#[test]
fn generated_tokens_are_fed_again() {
    let mut bench = Bench::new(model(24), EngineLimits::default());
    let first = with_prompt(prompt(45, 1, 0), 26);
    let (found, ..) = run(&mut bench, &first);
    let conversation = [first.prompt.ids(), &ids_of(&found), &[1, 2, 3]].concat();
    let second = with_prompt(conversation, 9);
    assert_eq!(run(&mut bench, &second).2, 40);
}

#[test]
fn failed_prompts_are_not_cached() {
    let mut plain = model(24);
    plain.few_tokens = 0;
    let mut bench = Bench::new(plain, EngineLimits::default());
    let failing = with_prompt(prompt(40, 1, 3), 5);
    *bench.controls.poison.borrow_mut() = Poison::After(failing.prompt.ids().to_vec());
    for _ in 0..2 {
        let (found, fed, cached) = run(&mut bench, &failing);
        assert!(matches!(found[..], [Event::Failed(_)]));
        assert_eq!((fed, cached), (43, 0));
    }
}

#[test]
fn running_requests_share_pages() {
    let mut bench = Bench::new(model(16), EngineLimits::default());
    // Each needs seven pages, of which five are shared. Without sharing, fifteen could not hold three.
    let requests = [1, 2, 3].map(|first| Generation {
        sampling: sampled(2),
        ..with_prompt(prompt(40, first, 5), 9)
    });
    let mut events = requests.each_ref().map(|request| bench.submit(request));
    for _ in 0..6 {
        assert!(bench.step().is_pending());
    }
    assert_eq!(bench.handle.free_pages(), 16 - 5 - 3);
    assert!(bench.settle().is_pending());
    assert_eq!(events.each_ref().map(cached), [0, 40, 40]);
    let expected = alone(model(16), EngineLimits::default(), &requests);
    for (events, expected) in events.iter_mut().zip(&expected) {
        assert_eq!(read_all(events), expected[0]);
    }
    assert!(bench.calls().iter().any(|call| call.owners.len() == 3));
    assert!(bench.all_memory_is_free());
}

#[test]
fn candidates_and_arrays_share_cached_pages() {
    let mut bench = Bench::new(model(24), EngineLimits::default());
    let request = [1, 2].map(|first| Generation {
        sampling: sampled(2),
        candidates: 3,
        ..with_prompt(prompt(40, first, 5), 20)
    });
    let expected = alone(model(24), EngineLimits::default(), &request);
    for _ in 0..2 {
        let mut events = bench.submit_all(&request);
        assert_eq!(bench.read_to_end(&mut events), expected);
        let second: Vec<_> = events[1].iter().map(cached).collect();
        assert_eq!(second, [40; 3]);
        assert!(bench.all_memory_is_free());
    }
    let fed = bench.calls().into_iter().filter(|call| call.fed > 1);
    assert_eq!(fed.map(|call| call.fed).sum::<usize>(), 45 + 3 * 5);
}

#[test]
fn nothing_is_cached_with_a_limit_of_zero() {
    let limits = EngineLimits {
        max_cached_pages: 0,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(model(16), limits);
    let request = with_prompt(prompt(50, 1, 1), 4);
    for _ in 0..2 {
        let (_, fed, cached) = run(&mut bench, &request);
        assert_eq!((fed, cached), (51, 0));
    }
}
