//! The entry to the engine: validates and queues requests, and reports how busy the engine is.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::clock::TimeLimit;
use super::event::{Event, FinishReason};
use super::events::{self, EventBudget, EventSender, Events};
use super::generation::{Content, Embeddings, Generation, Prompt};
use super::job::Job;
use super::limits::EngineLimits;
use super::model::ModelLimits;
use super::reservation::Reservation;
use super::shared::Shared;
use crate::{Error, RequestFault, Result};

/// A cheap reference to an engine. When the last one is dropped, the engine ends after its work.
#[derive(Clone)]
pub struct EngineHandle {
    inner: Rc<Inner>,
}

struct Inner {
    shared: Rc<Shared>,
    limits: EngineLimits,
    max_queue: Cell<usize>,
    model: ModelLimits,
    context_tokens: usize,
}

impl fmt::Debug for EngineHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHandle")
            .field("active_generations", &self.active_generations())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.abandoned.set(true);
        self.shared.activity.wake.raise();
    }
}

impl EngineHandle {
    pub(super) fn new(shared: Rc<Shared>, limits: EngineLimits, model: ModelLimits) -> Self {
        debug_assert!(
            model.state_slots != 1,
            "one slot holds no prompt and candidate"
        );
        let held_tokens = model.page_count.saturating_mul(model.page_tokens);
        Self {
            inner: Rc::new(Inner {
                shared,
                max_queue: Cell::new(limits.max_queue),
                limits,
                context_tokens: model.context_tokens.min(held_tokens),
                model,
            }),
        }
    }

    /// Queues the prompts of one request, as one place in the queue, and returns the events per
    /// prompt and candidate; dropping a candidate's events cancels it.
    ///
    /// The candidates of a request may wait for each other's pages: read all of them, as they come. A request that waits
    /// for its reader while others wait for its memory fails after a while ([`Error::StalledReader`]).
    ///
    /// # Errors
    /// [`Error::Request`] for a prompt that is empty, does not fit the context, or holds an id outside
    /// the vocabulary or embeddings that the model does not take; [`Error::QueueFull`];
    /// [`Error::DeviceLost`] after the loss of the device; [`Error::Internal`] without any prompt or
    /// candidate.
    pub fn submit(&self, generations: Vec<Generation>) -> Result<Vec<Vec<Events>>> {
        self.submit_at(None, generations, None)
    }

    /// The same at a place that was [reserved](Self::reserve), in which case the queue is not full, and for a request that
    /// fails with the error of its time limit. This frees its memory and its place in the queue even if its reader reads
    /// nothing.
    ///
    /// # Errors
    /// The errors of [`submit`](Self::submit).
    pub fn submit_at(
        &self,
        reservation: Option<Reservation>,
        generations: Vec<Generation>,
        time_limit: Option<TimeLimit>,
    ) -> Result<Vec<Vec<Events>>> {
        let Inner { shared, limits, .. } = &*self.inner;
        self.check_is_up()?;
        if generations.is_empty() {
            return Err(Error::Internal("a request without prompts".into()));
        }
        for generation in &generations {
            self.check(generation)?;
        }
        if reservation.is_none() && generations.iter().any(needs_model) {
            self.check_room()?;
        }
        let budget = EventBudget::new(limits.max_unread_events);
        let mut prompts = Vec::with_capacity(generations.len());
        let mut readers = Vec::with_capacity(generations.len());
        for mut generation in generations {
            let room = self.inner.context_tokens - generation.prompt.len();
            generation.max_tokens = generation.max_tokens.min(room);
            let channel = |_| events::channel(&shared.activity, &budget);
            let (senders, events): (Vec<_>, Vec<_>) =
                (0..generation.candidates).map(channel).unzip();
            readers.push(events);
            begin(&generation, &senders);
            if needs_model(&generation) {
                prompts.push((generation, senders));
            }
        }
        if !prompts.is_empty() {
            let mut job = Job::new(prompts, limits.max_run_ahead_tokens, time_limit);
            job.held = reservation.and_then(Reservation::into_held);
            shared.queue.borrow_mut().push_back(job);
            shared.activity.wake.raise();
        }
        Ok(readers)
    }

    /// Takes a place in the queue for a request of so many candidates that takes time to prepare. The request is behind those
    /// that are submitted meanwhile.
    ///
    /// # Errors
    /// [`Error::QueueFull`]; [`Error::DeviceLost`] after the loss of the device.
    pub fn reserve(&self, candidates: usize) -> Result<Reservation> {
        self.check_is_up()?;
        self.check_room()?;
        Ok(Reservation::new(self.inner.shared.clone(), candidates))
    }

    fn check_is_up(&self) -> Result<()> {
        match &*self.inner.shared.down.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn check_room(&self) -> Result<()> {
        let Inner { shared, model, .. } = &*self.inner;
        shared.purge_queue();
        let max_queue = self.inner.max_queue.get();
        match shared.is_full(max_queue, model.max_batch.max(1)) {
            true => Err(Error::QueueFull { max_queue }),
            false => Ok(()),
        }
    }

    /// Feeds a prompt as soon as the engine is idle, so that requests whose prompts begin like it find its pages cached.
    /// `make` is called then. Only the newest preparations are kept, and a prompt that is not one for this model is
    /// dropped.
    pub fn prepare(&self, make: impl FnOnce() -> Option<Prompt> + 'static) {
        let Inner { shared, model, .. } = &*self.inner;
        let (vocab_size, context_tokens) = (model.vocab_size, self.inner.context_tokens);
        let takes_embeddings = model.embedding_width.is_some();
        let suits = move |prompt: &Prompt| {
            prompt.len() < context_tokens
                && prompt.tokens().all(|id| (id as usize) < vocab_size)
                && (takes_embeddings || prompt.embeddings().next().is_none())
        };
        let make = Box::new(move || make().filter(suits));
        shared.preparations.borrow_mut().push(make);
        shared.activity.wake.raise();
    }

    /// Longest sequence in tokens: the model's context, or what its pages hold if that is less.
    pub fn context_tokens(&self) -> usize {
        self.inner.context_tokens
    }

    /// Length of a logits row; every token id is below it.
    pub fn vocab_size(&self) -> usize {
        self.inner.model.vocab_size
    }

    /// Candidates that wait or run: neither ended nor cancelled.
    pub fn active_generations(&self) -> usize {
        self.inner.shared.activity.active.get()
    }

    /// Changes how many requests may wait from now on.
    pub fn set_max_queue(&self, max_queue: usize) {
        self.inner.max_queue.set(max_queue);
    }

    /// KV pages that no sequence holds, kept ones included.
    pub fn free_pages(&self) -> usize {
        self.inner.shared.free.get().pages
    }

    /// State slots that no sequence holds, snapshots included.
    pub fn free_states(&self) -> usize {
        self.inner.shared.free.get().states
    }

    /// An error unless the model takes the embeddings of a prompt.
    fn check_embeddings(&self, generation: &Generation) -> Result<()> {
        let mut embeddings = generation.prompt.embeddings().peekable();
        if embeddings.peek().is_none() {
            return Ok(());
        }
        let Some(width) = self.inner.model.embedding_width else {
            return Err(unsupported("prompt: this model takes no embeddings"));
        };
        if generation.prompt_scores.is_some() {
            let message = "prompt: the tokens of a prompt with embeddings cannot be scored";
            return Err(unsupported(message));
        }
        let is_whole = |it: &Embeddings| match &it.content {
            Content::Rows(values) => values.len() == it.positions * width,
            Content::Pixels(_) => true,
        };
        match embeddings.all(is_whole) {
            true => Ok(()),
            false => Err(Error::Internal(format!(
                "embeddings that are not {width} wide"
            ))),
        }
    }

    fn check(&self, generation: &Generation) -> Result<()> {
        let Inner {
            model: ModelLimits { vocab_size, .. },
            context_tokens,
            ..
        } = *self.inner;
        let refuse = |fault, message| {
            Err(Error::Request {
                fault,
                param: Some("prompt".into()),
                message,
            })
        };
        if generation.candidates == 0 {
            return Err(Error::Internal("a prompt without candidates".into()));
        }
        let prompt = &generation.prompt;
        if prompt.is_empty() {
            return refuse(RequestFault::InvalidValue, "prompt has no tokens".into());
        }
        self.check_embeddings(generation)?;
        if let Some(id) = prompt.tokens().find(|&id| id as usize >= vocab_size) {
            let message = format!("prompt: token id {id} is not below {vocab_size}");
            return refuse(RequestFault::OutOfRange, message);
        }
        // One generated token needs a position too.
        let needed = prompt.len() + usize::from(generation.max_tokens > 0);
        if needed > context_tokens {
            let sent = format!("The prompt has {} tokens", prompt.len());
            return Err(Error::exceeds_context("prompt", context_tokens, sent));
        }
        Ok(())
    }
}

/// Refuses what the loaded model does not support.
fn unsupported(message: &str) -> Error {
    Error::Request {
        fault: RequestFault::UnsupportedParameter,
        param: Some("prompt".into()),
        message: message.into(),
    }
}

/// Whether anything of the prompt has to be fed.
fn needs_model(generation: &Generation) -> bool {
    let is_scored = generation.prompt_scores.is_some() && generation.prompt.len() > 1;
    generation.max_tokens > 0 || is_scored
}

/// Sends the events that need no model: a prompt of one token has no scores, and a request without
/// scores and tokens is finished.
fn begin(generation: &Generation, candidates: &[EventSender]) {
    for candidate in candidates {
        if generation.prompt_scores.is_some() && generation.prompt.len() == 1 {
            candidate.send(Event::Prompt { scores: [].into() });
        }
        if !needs_model(generation) {
            candidate.send(Event::Finished {
                reason: FinishReason::Length,
            });
        }
    }
}
