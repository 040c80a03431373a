//! Thousands of random submits, reads and cancels: no page leaks, no answer differs.

use super::*;
use proptest::prelude::*;

const CONTEXT: usize = 48;

#[derive(Debug, Clone)]
enum Act {
    Submit(Generation),
    Step,
    /// Reads up to so many events of one of the streams.
    Read(prop::sample::Index, usize),
    Cancel(prop::sample::Index),
}

fn any_generation() -> impl Strategy<Value = Generation> {
    let prompt = prop::collection::vec(0..fake_model::VOCAB as u32, 1..CONTEXT);
    let sampling = prop_oneof![Just(greedy()), any::<i64>().prop_map(sampled)];
    let stop_ids = prop::collection::vec(0..fake_model::VOCAB as u32, 0..3);
    (prompt, 0..60usize, sampling, stop_ids).prop_map(|(prompt, max_tokens, sampling, stop_ids)| {
        Generation {
            prompt,
            max_tokens,
            candidates: 1,
            sampling,
            constraint: None,
            scores: None,
            prompt_scores: None,
            stop_ids,
        }
    })
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => any_generation().prop_map(Act::Submit),
        6 => Just(Act::Step),
        3 => (any::<prop::sample::Index>(), 1..12usize).prop_map(|(at, n)| Act::Read(at, n)),
        1 => any::<prop::sample::Index>().prop_map(Act::Cancel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaks_and_nothing_differs(
        acts in prop::collection::vec(any_act(), 1..250),
        page_count in 12usize..30,
        prefill_chunk_tokens in 1usize..30,
        max_run_ahead_tokens in 1usize..20,
        max_unread_events in 2usize..20,
        suspensions in 0usize..3,
    ) {
        let limits = EngineLimits { max_queue: 5, max_unread_events, prefill_chunk_tokens, max_run_ahead_tokens };
        let mut bench = Bench::new(FakeModel::new(CONTEXT, page_count, 4), limits);
        bench.controls.suspensions.set(suspensions);
        let mut streams: Vec<(Generation, Events, Vec<Event>)> = vec![];
        for act in acts {
            match act {
                Act::Submit(generation) => {
                    if let Ok(mut events) = bench.handle.submit(vec![generation.clone()]) {
                        let events = events.remove(0).remove(0);
                        streams.push((generation, events, vec![]));
                    }
                }
                Act::Step => prop_assert!(bench.step().is_pending()),
                Act::Read(at, limit) if !streams.is_empty() => {
                    let (_, events, found) = at.get_mut(&mut streams);
                    let more = read(events, limit);
                    prop_assert!(more.len() <= max_unread_events);
                    found.extend(more);
                }
                Act::Cancel(at) if !streams.is_empty() => {
                    streams.swap_remove(at.index(streams.len()));
                }
                Act::Read(..) | Act::Cancel(_) => {}
            }
        }
        // Now everyone reads to the end; each round at least one event comes, or all have ended.
        loop {
            prop_assert!(bench.settle().is_pending());
            let mut news = 0;
            for (_, events, found) in &mut streams {
                let more = read_all(events);
                news += more.len();
                found.extend(more);
            }
            if news == 0 {
                break;
            }
        }
        for (generation, _, found) in &streams {
            prop_assert_eq!(found, &expected_events(generation, CONTEXT));
        }
        prop_assert!(bench.all_pages_are_free());
        prop_assert_eq!(bench.handle.active_generations(), 0);
    }
}
