//! The output depends only on the model and the sampler, not on chunks, pages and run-ahead.

use super::super::events::{Activity, EventBudget, channel};
use super::super::run_ahead::RunAhead;
use super::super::sequence::Sequence;
use super::*;

fn run_alone(
    generation: &Generation,
    limits: EngineLimits,
    page_tokens: usize,
) -> (Vec<Event>, Vec<Call>) {
    let context_tokens = 128;
    let pages = context_tokens / page_tokens;
    let mut bench = Bench::new(FakeModel::new(context_tokens, pages, page_tokens), limits);
    let mut events = bench.submit(generation);
    assert!(bench.settle().is_pending());
    assert!(bench.all_memory_is_free());
    assert_eq!(bench.handle.active_generations(), 0);
    (read_all(&mut events), bench.calls())
}

#[test]
fn equals_the_plain_loop() {
    for sampling in [greedy(), sampled(3), sampled(-1)] {
        for (prompt_tokens, chunk, ahead, page_tokens) in [
            (1, 512, 16, 16),
            (37, 8, 16, 4),
            (40, 8, 5, 8),
            (41, 1, 1, 1),
            (100, 99, 64, 32),
        ] {
            let limits = EngineLimits {
                prefill_chunk_tokens: chunk,
                max_run_ahead_tokens: ahead,
                ..EngineLimits::default()
            };
            let generation = Generation {
                sampling: sampling.clone(),
                ..generation(9, prompt_tokens, 27)
            };
            let (events, calls) = run_alone(&generation, limits, page_tokens);
            assert_eq!(events, expected_events(&generation, 128));
            assert!(calls.iter().all(|call| call.fed <= chunk));
        }
    }
}

#[test]
fn greedy_on_the_device_equals_greedy_on_the_host() {
    // Temperature 1 with top_k 1 samples from one survivor.
    let on_device = generation(4, 10, 30);
    let mut on_host = on_device.clone();
    on_host.sampling = SamplingParams {
        temperature: 1.0,
        top_k: Some(1),
        ..sampled(5)
    };
    let (device_events, device_calls) = run_alone(&on_device, EngineLimits::default(), 8);
    let (host_events, host_calls) = run_alone(&on_host, EngineLimits::default(), 8);
    assert_eq!(device_events, host_events);
    assert!(device_calls.iter().all(|call| call.steps().is_some()));
    assert!(host_calls.iter().all(|call| call.steps().is_none()));
}

#[test]
fn the_first_token_comes_alone_then_the_run_ahead_doubles() {
    let (events, calls) = run_alone(&generation(4, 10, 40), EngineLimits::default(), 8);
    assert_eq!(events.len(), 41);
    let steps: Vec<_> = calls.iter().filter_map(Call::steps).collect();
    assert_eq!(steps, [1, 2, 4, 8, 16, 9]);
}

#[test]
fn tokens_past_a_stop_are_discarded() {
    let mut generation = generation(2, 5, 60);
    let ids = ids_of(&expected_events(&generation, 128));
    // The eleventh token is inside a run of eight (tokens 8 to 15).
    generation.stop_ids = vec![ids[10]];
    let end = ids.iter().position(|id| *id == ids[10]).unwrap();
    let (events, _) = run_alone(&generation, EngineLimits::default(), 8);
    assert_eq!(events.len(), end + 2);
    assert_eq!(
        events[end + 1],
        Event::Finished {
            reason: FinishReason::Stop
        }
    );
    assert_eq!(events, expected_events(&generation, 128));
}

#[test]
fn tokens_past_a_stop_are_rolled_back() {
    let mut model = FakeModel::new(128, 16, 8);
    let mut generation = generation(2, 5, 60);
    let ids = ids_of(&expected_events(&generation, 128));
    generation.stop_ids = vec![ids[10]];
    let first = ids.iter().position(|id| *id == ids[10]).unwrap();
    let limits = EngineLimits::default();
    let activity = Rc::new(Activity::default());
    let (sender, _events) = channel(&activity, &EventBudget::new(limits.max_unread_events));
    let mut history = generation.prompt.ids().to_vec();
    history.extend(&ids[..=first]);
    let run_ahead = RunAhead::new(limits.max_run_ahead_tokens);
    let mut sequence = Sequence::new(0, Rc::new(generation), 0, sender, run_ahead);
    sequence.memory.pages = vec![3, 1, 4, 15, 9, 2, 6, 5];
    let mut ran_past = false;
    while !sequence.candidate.is_closed() {
        let step = sequence.next_tokens();
        ran_past = sequence.memory.len_tokens + step.kv_tokens() > history.len() - 1;
        let run = sequence.run_single(&mut model, step);
        pollster::block_on(run).unwrap();
    }
    assert!(ran_past, "the model had run further");
    assert_eq!(
        sequence.memory.len_tokens,
        history.len() - 1,
        "the stop itself is not fed"
    );
    let held = model.read(&sequence.memory, sequence.memory.len_tokens);
    assert_eq!(held, history[..history.len() - 1]);
}

#[test]
fn a_stop_id_on_the_last_allowed_token_is_a_stop() {
    for sampling in [greedy(), sampled(8)] {
        let mut generation = Generation {
            sampling,
            ..generation(2, 5, 60)
        };
        let ids = ids_of(&expected_events(&generation, 128));
        let last = (0..60)
            .find(|&at| at >= 5 && !ids[..at].contains(&ids[at]))
            .unwrap();
        generation.stop_ids = vec![ids[last]];
        generation.max_tokens = last + 1;
        let (events, _) = run_alone(&generation, EngineLimits::default(), 8);
        assert_eq!(events.len(), last + 2);
        assert_eq!(
            events.last(),
            Some(&Event::Finished {
                reason: FinishReason::Stop
            })
        );
    }
}

#[test]
fn a_request_for_no_tokens_ends_at_once() {
    let (events, calls) = run_alone(&generation(2, 128, 0), EngineLimits::default(), 8);
    assert_eq!(
        events,
        [Event::Finished {
            reason: FinishReason::Length
        }]
    );
    assert!(calls.is_empty());
}

#[test]
fn a_full_context_ends_with_length() {
    for sampling in [greedy(), sampled(8)] {
        for prompt_tokens in [120, 127] {
            let generation = Generation {
                sampling: sampling.clone(),
                ..generation(2, prompt_tokens, usize::MAX)
            };
            let (events, _) = run_alone(&generation, EngineLimits::default(), 8);
            assert_eq!(events.len(), 128 - prompt_tokens + 1);
            assert_eq!(events, expected_events(&generation, 128));
        }
    }
}

#[test]
fn fewer_pages_than_context_shorten_the_context() {
    let mut bench = Bench::new(FakeModel::new(1000, 3, 8), EngineLimits::default());
    assert_eq!(bench.handle.context_tokens(), 24);
    let generation = generation(2, 20, 100);
    let mut events = bench.submit(&generation);
    assert!(bench.settle().is_pending());
    assert_eq!(read_all(&mut events), expected_events(&generation, 24));
}

#[test]
fn the_seed_decides() {
    let with_seed = |seed| {
        let generation = Generation {
            sampling: sampled(seed),
            ..generation(6, 5, 40)
        };
        run_alone(&generation, EngineLimits::default(), 8).0
    };
    assert_eq!(with_seed(1), with_seed(1));
    assert_ne!(with_seed(1), with_seed(2));
}
