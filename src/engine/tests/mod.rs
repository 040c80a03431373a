//! Tests of the engine with a fake model, on a bench that runs it step by step.

mod cancel;
mod candidates;
mod changes;
mod constraint;
mod drafts;
mod failure;
mod fake_clock;
mod fake_model;
mod joining;
mod output;
mod prefixes;
mod preparations;
mod prompts;
mod random;
mod reservations;
mod scheduling;
mod scores;
mod spans;
mod stalls;
mod states;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::{FutureExt, StreamExt};

use super::event::{Event, FinishReason};
use super::generation::{DraftRules, Generation};
use super::model::{CausalModel, ModelLimits};
use super::{Engine, EngineHandle, EngineLimits, Events, Speculation};
use crate::Result;
use crate::sample::SamplingParams;
use fake_clock::FakeClock;
use fake_model::{Call, Controls, FakeModel, Kind, Poison, expected};

/// An engine whose task is polled by hand.
struct Bench {
    run: Option<Pin<Box<dyn Future<Output = Result<()>>>>>,
    handle: EngineHandle,
    controls: Rc<Controls>,
    limits: ModelLimits,
    clock: Rc<FakeClock>,
}

impl Bench {
    fn new(model: FakeModel, limits: EngineLimits) -> Self {
        let controls = model.controls.clone();
        let sizes = model.limits();
        let clock = Rc::new(FakeClock::default());
        let (engine, handle) = Engine::new(model, limits, clock.clone());
        Self {
            run: Some(Box::pin(engine.run())),
            handle,
            controls,
            limits: sizes,
            clock,
        }
    }

    fn submit(&self, generation: &Generation) -> Events {
        let mut events = self.handle.submit(vec![generation.clone()]).unwrap();
        events.remove(0).remove(0)
    }

    fn submit_all(&self, generations: &[Generation]) -> Vec<Vec<Events>> {
        self.handle.submit(generations.to_vec()).unwrap()
    }

    /// Runs the engine and reads everything until nothing more arrives.
    fn read_to_end(&mut self, events: &mut [Vec<Events>]) -> Vec<Vec<Vec<Event>>> {
        let mut found: Vec<Vec<Vec<Event>>> =
            events.iter().map(|it| vec![vec![]; it.len()]).collect();
        loop {
            assert!(self.settle().is_pending());
            let mut news = 0;
            let readers = events.iter_mut().flatten();
            for (events, found) in readers.zip(found.iter_mut().flatten()) {
                let more = read_all(events);
                news += more.len();
                found.extend(more);
            }
            if news == 0 {
                return found;
            }
        }
    }

    /// Polls the engine's task once: one step of the model, unless it suspends.
    fn step(&mut self) -> Poll<Result<()>> {
        let mut context = Context::from_waker(Waker::noop());
        self.run.as_mut().unwrap().as_mut().poll(&mut context)
    }

    /// Polls the engine's task until it sleeps.
    fn settle(&mut self) -> Poll<Result<()>> {
        run_until_stalled(self.run.as_mut().unwrap().as_mut())
    }

    fn calls(&self) -> Vec<Call> {
        self.controls.calls.borrow().clone()
    }

    fn all_memory_is_free(&self) -> bool {
        let free = (self.handle.free_pages(), self.handle.free_states());
        free == (self.limits.page_count, self.limits.state_slots)
    }
}

struct WakeNote(AtomicBool);

impl Wake for WakeNote {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls a future until it is ready or was not woken.
fn run_until_stalled<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    let note = Arc::new(WakeNote(AtomicBool::new(true)));
    let waker = Waker::from(note.clone());
    while note.0.swap(false, Ordering::Relaxed) {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Poll::Ready(output);
        }
    }
    Poll::Pending
}

/// Reads the available events, at most `limit`.
fn read(events: &mut Events, limit: usize) -> Vec<Event> {
    (0..limit)
        .map_while(|_| events.next().now_or_never().flatten())
        .collect()
}

fn read_all(events: &mut Events) -> Vec<Event> {
    read(events, usize::MAX)
}

fn greedy() -> SamplingParams {
    SamplingParams {
        temperature: 0.0,
        ..sampled(0)
    }
}

fn sampled(seed: i64) -> SamplingParams {
    SamplingParams {
        temperature: 0.8,
        top_p: 0.9,
        top_k: Some(20),
        seed,
        ..SamplingParams::default()
    }
}

/// A greedy request whose prompt has `prompt_tokens` tokens and starts with `owner`.
fn generation(owner: u32, prompt_tokens: usize, max_tokens: usize) -> Generation {
    let rest = (1..prompt_tokens as u32).map(|i| (i * 7 + owner) % fake_model::VOCAB as u32);
    Generation {
        prompt: std::iter::once(owner)
            .chain(rest)
            .collect::<Vec<_>>()
            .into(),
        max_tokens,
        sampling: greedy(),
        candidates: 1,
        constraint: None,
        scores: None,
        prompt_scores: None,
        rules: None,
        stop_ids: vec![],
        drafts: DraftRules::default(),
    }
}

/// The events of the only candidate, in a context of `context_tokens`.
fn expected_events(generation: &Generation, context_tokens: usize) -> Vec<Event> {
    expected(generation, 0, context_tokens, &Poison::None)
}

/// The events of each prompt and candidate.
fn expected_all(generations: &[Generation], context_tokens: usize) -> Vec<Vec<Vec<Event>>> {
    let of = |generation: &Generation| {
        let candidates = 0..generation.candidates;
        let events = candidates.map(|it| expected(generation, it, context_tokens, &Poison::None));
        events.collect()
    };
    generations.iter().map(of).collect()
}

/// The events per prompt and candidate of an engine that runs only this request and caches no pages.
fn alone(model: FakeModel, limits: EngineLimits, request: &[Generation]) -> Vec<Vec<Vec<Event>>> {
    let limits = EngineLimits {
        max_cached_pages: 0,
        max_queue: request.len(),
        max_unread_events: 256,
        speculation: Speculation::Off,
        ..limits
    };
    let mut bench = Bench::new(model, limits);
    let one_by_one = request.iter().map(|generation| {
        let mut events = bench.submit_all(std::slice::from_ref(generation));
        bench.read_to_end(&mut events).remove(0)
    });
    one_by_one.collect()
}

/// The ids among events.
fn ids_of(events: &[Event]) -> Vec<u32> {
    let id = |event: &Event| match event {
        Event::Token { id, .. } => Some(*id),
        _ => None,
    };
    events.iter().filter_map(id).collect()
}
