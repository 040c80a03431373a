//! Prompts that are fed while the engine is idle: what is cached then, what they delay, and that results do not change.

use super::*;
use crate::Error;
use crate::engine::prompt::{Prompt, Span};

const PAGE_TOKENS: usize = 8;

/// Steps of up to three tokens round differently.
fn model(state_slots: usize) -> FakeModel {
    let mut model = FakeModel::new(512, 96, PAGE_TOKENS).with_states(state_slots);
    model.few_tokens = 3;
    model
}

fn bench(state_slots: usize) -> Bench {
    Bench::new(model(state_slots), EngineLimits::default())
}

fn prompt(owner: u32, tokens: usize) -> Vec<u32> {
    generation(owner, tokens, 1).prompt.ids().to_vec()
}

fn prepare(bench: &Bench, ids: &[u32]) {
    let prompt = Prompt::from(ids.to_vec());
    bench.handle.prepare(move || Some(prompt));
}

fn with_prompt(ids: &[u32], max_tokens: usize) -> Generation {
    Generation {
        prompt: ids.to_vec().into(),
        ..generation(0, 1, max_tokens)
    }
}

/// Runs a request to its end; returns its events and the cached tokens of its prompt.
#[track_caller]
fn run(bench: &mut Bench, request: &Generation) -> (Vec<Event>, usize) {
    let mut events = bench.submit(request);
    assert!(bench.settle().is_pending());
    let found = read_all(&mut events);
    assert!(bench.all_memory_is_free());
    (found, events.cached_prompt_tokens().get())
}

/// The tokens that each call fed, by the first token of its prompt.
fn fed(bench: &Bench) -> Vec<(u32, usize)> {
    let calls = bench.calls();
    calls.iter().map(|it| (it.owners[0], it.fed)).collect()
}

#[test]
fn the_next_turn_finds_all_whole_pages() {
    for state_slots in [0, 6] {
        for tokens in [100, 104, 105, 200] {
            let mut bench = bench(state_slots);
            let (answer, _) = run(&mut bench, &with_prompt(&prompt(1, 50), 30));
            let mut next = prompt(1, 50);
            next.extend(ids_of(&answer));
            next.extend(prompt(9, tokens - next.len()));
            prepare(&bench, &next);
            assert!(bench.settle().is_pending());
            assert!(bench.all_memory_is_free());
            next.extend(prompt(5, 20));
            let request = with_prompt(&next, 12);
            let (found, cached) = run(&mut bench, &request);
            // A snapshot of a state is taken only where more of the prompt follows.
            let whole = (tokens - usize::from(state_slots > 0)) / PAGE_TOKENS * PAGE_TOKENS;
            assert_eq!(cached, whole, "{tokens} tokens, {state_slots} slots");
            let alone = alone(model(state_slots), EngineLimits::default(), &[request]);
            assert_eq!(found, alone[0][0]);
        }
    }
}

#[test]
fn only_what_is_not_cached_is_fed_part_by_part() {
    let mut bench = bench(0);
    run(&mut bench, &with_prompt(&prompt(1, 64), 1));
    let before = bench.calls().len();
    prepare(&bench, &prompt(1, 203));
    assert!(bench.settle().is_pending());
    let parts = &fed(&bench)[before..];
    let steps = [16; 8].into_iter().chain([8]).collect::<Vec<_>>();
    assert_eq!(parts.iter().map(|it| it.1).collect::<Vec<_>>(), steps);
    prepare(&bench, &prompt(1, 203));
    assert!(bench.settle().is_pending());
    assert_eq!(bench.calls().len(), before + 9, "everything is cached");
}

#[test]
fn it_waits_for_requests_and_delays_them_by_one_step() {
    let mut bench = bench(0);
    let mut running = bench.submit(&generation(2, 5, 30));
    assert!(bench.step().is_pending());
    prepare(&bench, &prompt(1, 300));
    while bench.handle.active_generations() > 0 {
        assert!(fed(&bench).iter().all(|it| it.0 == 2));
        assert!(bench.step().is_pending());
        read_all(&mut running);
    }
    let before = bench.calls().len();
    while bench.calls().len() == before {
        assert!(bench.step().is_pending());
    }
    assert_eq!(bench.handle.active_generations(), 0, "it does not count");
    let mut request = bench.submit(&generation(3, 5, 1));
    assert!(bench.settle().is_pending());
    assert_eq!(fed(&bench)[before..before + 2], [(1, 16), (3, 5)]);
    assert_eq!(read_all(&mut request).len(), 2);
    // It begins its part again afterwards, and is finished.
    let rest = &fed(&bench)[before + 2..];
    assert_eq!(rest.iter().map(|it| it.1).sum::<usize>(), 296);
    assert!(bench.all_memory_is_free());
}

/// A model that sees images whole feeds text in steps as short, and an image in one step.
#[test]
fn images_that_are_seen_whole_are_not_divided() {
    let tokens = |count: usize| Span::Tokens((0..count as u32).map(|i| i * 7 % 50).collect());
    // The first step that would end in the image ends before it, unless it would be one of few tokens.
    for (before, steps) in [(19, [16, 29, 19]), (20, [16, 4, 26]), (40, [16, 16, 8])] {
        let mut model = model(0);
        model.whole_images = true;
        let mut bench = Bench::new(model, EngineLimits::default());
        let whole = Prompt::new([tokens(before), spans::pixels(1, 26), tokens(200)]);
        bench.handle.prepare({
            let whole = whole.clone();
            move || Some(whole)
        });
        assert!(bench.settle().is_pending());
        let first = fed(&bench)
            .iter()
            .map(|it| it.1)
            .take(3)
            .collect::<Vec<_>>();
        assert_eq!(first, steps, "{before} tokens before the image");
        let request = Generation {
            prompt: whole,
            ..generation(0, 1, 12)
        };
        let (found, _) = run(&mut bench, &request);
        let mut model = self::model(0);
        model.whole_images = true;
        assert_eq!(
            found,
            alone(model, EngineLimits::default(), &[request])[0][0]
        );
    }
}

#[test]
fn an_idle_engine_admits_as_many_requests_as_without_it() {
    let limits = EngineLimits {
        max_queue: 1,
        ..EngineLimits::default()
    };
    let mut bench = Bench::new(model(0), limits);
    bench.controls.suspensions.set(1);
    prepare(&bench, &prompt(1, 300));
    assert!(bench.step().is_pending());
    let _events = [2, 3, 4, 5, 6].map(|owner| bench.submit(&generation(owner, 5, 2)));
    let refused = bench.handle.submit(vec![generation(7, 5, 2)]);
    assert_eq!(refused.unwrap_err(), Error::QueueFull { max_queue: 1 });
}

#[test]
fn the_newest_come_first_and_only_some_are_kept() {
    let mut bench = bench(0);
    for owner in 1..=6 {
        prepare(&bench, &prompt(owner, 16));
    }
    assert!(bench.settle().is_pending());
    assert_eq!(fed(&bench), [6, 5, 4, 3].map(|owner| (owner, 16)));
}

#[test]
fn a_prompt_that_does_not_suit_the_model_is_dropped() {
    let mut bench = bench(0);
    bench.handle.prepare(|| None);
    prepare(&bench, &[]);
    prepare(&bench, &prompt(1, 512));
    prepare(&bench, &[fake_model::VOCAB as u32; 20]);
    assert!(bench.settle().is_pending());
    assert_eq!(bench.calls(), []);
}

#[test]
fn a_failing_part_ends_it() {
    let mut bench = bench(0);
    // The first step of the second part.
    let failure = (4, Error::OutOfMemory("no more".into()));
    bench.controls.fail_at.borrow_mut().push(failure);
    prepare(&bench, &prompt(1, 300));
    assert!(bench.settle().is_pending());
    assert_eq!(bench.calls().len(), 5);
    assert!(bench.all_memory_is_free());
    let request = with_prompt(&prompt(1, 300), 4);
    let (found, cached) = run(&mut bench, &request);
    assert_eq!(cached, 64);
    assert!(matches!(found.last(), Some(Event::Finished { .. })));
}

#[test]
fn a_lost_device_ends_the_engine() {
    let mut bench = bench(0);
    let lost = Error::DeviceLost("gone".into());
    bench.controls.fail_at.borrow_mut().push((0, lost.clone()));
    prepare(&bench, &prompt(1, 300));
    assert_eq!(bench.settle(), Poll::Ready(Err(lost)));
}

#[test]
fn an_engine_without_handles_ends_at_once() {
    let bench = bench(0);
    prepare(&bench, &prompt(1, 300));
    let Bench {
        run: Some(mut run),
        handle,
        controls,
        ..
    } = bench
    else {
        unreachable!("the engine was not polled");
    };
    drop(handle);
    assert_eq!(run_until_stalled(run.as_mut()), Poll::Ready(Ok(())));
    assert_eq!(*controls.calls.borrow(), []);
}

#[test]
fn a_change_of_the_model_drops_what_waits() {
    let (engine, handle) = Engine::new(
        model(0),
        EngineLimits::default(),
        Rc::new(FakeClock::default()),
    );
    let access = engine.model_access();
    let mut run = Box::pin(engine.run());
    let calls = async {
        let prompt = Prompt::from(prompt(1, 300));
        handle.prepare(move || Some(prompt));
        let count = async |model: &mut FakeModel| Ok(model.controls.clone());
        access.change(count).await.unwrap()
    };
    let mut calls = Box::pin(calls);
    assert!(calls.as_mut().now_or_never().is_none());
    assert!(run_until_stalled(run.as_mut()).is_pending());
    let controls = calls.as_mut().now_or_never().unwrap();
    assert_eq!(*controls.calls.borrow(), []);
}
