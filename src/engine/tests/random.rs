//! Thousands of random submits, reads, cancels and failures: no memory leaks, no answer differs.

use super::super::prompt::{Prompt, Span};
use super::super::token_rules::TokenRules;
use super::*;
use crate::sample::ScoreRequest;
use proptest::prelude::*;

const CONTEXT: usize = 48;

#[derive(Debug, Clone)]
enum Act {
    Submit(Vec<Generation>),
    /// Prepares the prompt of a request.
    Prepare(Prompt),
    Step,
    /// Reads up to this many events of one of the streams.
    Read(prop::sample::Index, usize),
    Cancel(prop::sample::Index),
    /// Cancels what remains of a whole request.
    CancelRequest(prop::sample::Index),
}

/// The events that a reader has seen of a candidate.
struct Reader {
    request: usize,
    generation: Generation,
    candidate: u32,
    events: Events,
    found: Vec<Event>,
}

fn any_generation() -> impl Strategy<Value = Generation> {
    // Half of the prompts begin alike.
    let tokens = |len| prop::collection::vec(0..fake_model::VOCAB as u32, len);
    let begin = (0..CONTEXT / 2, prop_oneof![Just(3u32), Just(5)]);
    let alike = (begin, tokens(1..CONTEXT / 2)).prop_map(|((len, factor), own)| {
        let begin = (0..len as u32).map(|i| i * factor % fake_model::VOCAB as u32);
        begin.chain(own).collect::<Vec<u32>>()
    });
    let text = prop_oneof![tokens(1..CONTEXT), alike];
    // A third of the prompts contain an image.
    let image = prop::option::weighted(0.3, (0..4u128, 1..9usize, tokens(0..9)));
    let prompt = (text, image).prop_map(|(text, image)| match image {
        None => text.into(),
        Some((key, positions, after)) => {
            let text = [text, after].map(Span::Tokens);
            let [before, after] = text;
            let image = match key % 2 {
                0 => spans::image(key, positions),
                _ => spans::pixels(key, positions),
            };
            Prompt::new([before, image, after])
        }
    });
    let sampling = prop_oneof![Just(greedy()), any::<i64>().prop_map(sampled)];
    let stop_ids = prop::collection::vec(0..fake_model::VOCAB as u32, 0..3);
    let prompt_scores = prop::option::weighted(0.3, 0..3usize);
    let scores = prop::option::weighted(0.3, 0..5usize);
    let rules = prop::option::weighted(0.4, any_rules());
    // The index at which a prediction differs from the completion.
    let changed = prop::option::weighted(0.5, prop_oneof![Just(1000), 1..20usize]);
    (
        prompt,
        0..60usize,
        sampling,
        stop_ids,
        1..6u32,
        prompt_scores,
        (scores, rules, changed),
    )
        .prop_map(
            |(
                prompt,
                max_tokens,
                sampling,
                stop_ids,
                candidates,
                prompt_scores,
                (scores, rules, changed),
            )| {
                // Only prompts of text can be scored.
                let prompt_scores = prompt_scores.filter(|_| prompt.embeddings().next().is_none());
                let generation = Generation {
                    prompt,
                    max_tokens,
                    candidates,
                    sampling,
                    constraint: None,
                    rules: rules.flatten().map(Rc::new),
                    scores: scores.map(|top| ScoreRequest {
                        top,
                        ..ScoreRequest::default()
                    }),
                    prompt_scores,
                    stop_ids,
                    drafts: DraftRules::default(),
                };
                match changed {
                    Some(changed) => drafts::predicted(generation, changed),
                    None => generation,
                }
            },
        )
}

/// Rules that forbid stop ids, all but some ids, and short sequences.
fn any_rules() -> impl Strategy<Value = Option<TokenRules>> {
    let id = || 0..fake_model::VOCAB as u32;
    let allowed = prop::option::weighted(0.3, prop::collection::vec(id(), 1..6));
    let sequences = prop::collection::vec(prop::collection::vec(id(), 1..3), 0..8);
    (allowed, 0..9usize, sequences).prop_map(|(allowed, min_tokens, sequences)| {
        TokenRules::new(fake_model::VOCAB, allowed.as_deref(), min_tokens, sequences)
    })
}

/// One candidate, or several prompts with candidates.
fn any_request() -> impl Strategy<Value = Vec<Generation>> {
    let alone = any_generation().prop_map(|generation| {
        vec![Generation {
            candidates: 1,
            ..generation
        }]
    });
    prop_oneof![alone, prop::collection::vec(any_generation(), 1..5)]
}

fn any_act() -> impl Strategy<Value = Act> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        2 => any_request().prop_map(Act::Submit),
        1 => any_generation().prop_map(|generation| Act::Prepare(generation.prompt)),
        8 => Just(Act::Step),
        6 => (index(), 1..12usize).prop_map(|(at, n)| Act::Read(at, n)),
        2 => index().prop_map(Act::Cancel),
        1 => index().prop_map(Act::CancelRequest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaks_and_nothing_differs(
        acts in prop::collection::vec(any_act(), 1..250),
        page_count in 12usize..40,
        max_batch in 1usize..7,
        prefill_chunk_tokens in 1usize..30,
        max_run_ahead_tokens in 1usize..20,
        max_unread_events in 2usize..20,
        suspensions in 0usize..3,
        max_cached_pages in prop_oneof![Just(0), 1..10usize, Just(usize::MAX)],
        few_tokens in 0usize..4,
        [samples, whole_images] in any::<[bool; 2]>(),
        state_slots in prop_oneof![Just(0), 2..9usize],
        speculation in prop_oneof![Just(Speculation::Off), Just(Speculation::Predictions), Just(Speculation::All)],
        failing_calls in prop::collection::vec(0usize..300, 0..4),
        poison in prop_oneof![Just(Poison::None), Just(Poison::OneIn(100))],
    ) {
        let limits = EngineLimits { max_queue: 5, max_unread_events, prefill_chunk_tokens, max_run_ahead_tokens, max_cached_pages, speculation };
        let model = || {
            let mut model = FakeModel::new(CONTEXT, page_count, 4).with_states(state_slots);
            model.max_batch = max_batch;
            model.few_tokens = few_tokens;
            model.samples = samples;
            model.whole_images = whole_images;
            *model.controls.poison.borrow_mut() = poison.clone();
            model
        };
        let mut bench = Bench::new(model(), limits.clone());
        bench.controls.suspensions.set(suspensions);
        let failure = crate::Error::OutOfMemory("no more".into());
        let failures = failing_calls.into_iter().map(|call| (call, failure.clone()));
        bench.controls.fail_at.borrow_mut().extend(failures);
        let mut readers: Vec<Reader> = vec![];
        for (request, act) in acts.into_iter().enumerate() {
            match act {
                Act::Submit(generations) => {
                    let Ok(events) = bench.handle.submit(generations.clone()) else {
                        continue;
                    };
                    for (generation, events) in generations.into_iter().zip(events) {
                        prop_assert_eq!(events.len(), generation.candidates as usize);
                        readers.extend(events.into_iter().zip(0..).map(|(events, candidate)| Reader {
                            request,
                            generation: generation.clone(),
                            candidate,
                            events,
                            found: vec![],
                        }));
                    }
                }
                Act::Prepare(prompt) => bench.handle.prepare(|| Some(prompt)),
                Act::Step => prop_assert!(bench.step().is_pending()),
                Act::Read(at, limit) if !readers.is_empty() => {
                    let Reader { events, found, .. } = at.get_mut(&mut readers);
                    let more = read(events, limit);
                    prop_assert!(more.len() <= max_unread_events);
                    found.extend(more);
                }
                Act::Cancel(at) if !readers.is_empty() => {
                    readers.swap_remove(at.index(readers.len()));
                }
                Act::CancelRequest(at) if !readers.is_empty() => {
                    let request = at.get(&readers).request;
                    readers.retain(|reader| reader.request != request);
                }
                Act::Read(..) | Act::Cancel(_) | Act::CancelRequest(_) => {}
            }
        }
        // Now all readers read to the end. Each round, at least one event arrives or all have ended.
        loop {
            prop_assert!(bench.settle().is_pending());
            let mut news = 0;
            for Reader { events, found, .. } in &mut readers {
                let more = read_all(events);
                news += more.len();
                found.extend(more);
            }
            if news == 0 {
                break;
            }
        }
        for Reader { generation, candidate, found, .. } in &readers {
            let whole = if few_tokens == 0 {
                expected(generation, *candidate, CONTEXT, &poison)
            } else {
                let alone = alone(model(), limits.clone(), std::slice::from_ref(generation));
                alone[0][*candidate as usize].clone()
            };
            match found.split_last() {
                // The events before the failure are correct.
                Some((Event::Failed(error), told)) if *error == failure => {
                    prop_assert_eq!(told, &whole[..told.len()]);
                }
                _ => prop_assert_eq!(found, &whole),
            }
        }
        prop_assert!(bench.all_memory_is_free());
        prop_assert_eq!(bench.handle.active_generations(), 0);
    }
}
