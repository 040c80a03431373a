//! The entry: validates and queues requests.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use futures_channel::oneshot;

use super::job::Job;
use super::model::{EmbeddingInput, EmbeddingLimits};
use crate::engine::wake::WakeFlag;
use crate::{Error, RequestFault, Result};

/// The state that the handles and the engine's task share; no borrow of it outlives a call.
#[derive(Default)]
pub(super) struct Shared {
    /// Requests that wait for their next batch.
    pub(super) queue: RefCell<VecDeque<Job>>,
    /// Whether a batch is being computed.
    pub(super) is_running: Cell<bool>,
    /// Whether all handles are gone.
    pub(super) abandoned: Cell<bool>,
    /// The reason why nothing runs any more: the device is lost or the engine has stopped.
    pub(super) down: RefCell<Option<Error>>,
    pub(super) wake: WakeFlag,
}

impl Shared {
    /// Drops the waiting requests whose readers are gone.
    pub(super) fn purge(&self) {
        self.queue.borrow_mut().retain(|job| !job.is_cancelled());
    }
}

/// A cheap reference to an engine that embeds. When the last one is dropped, the engine ends after its work.
#[derive(Clone)]
pub struct EmbeddingHandle {
    inner: Rc<Inner>,
}

struct Inner {
    shared: Rc<Shared>,
    limits: EmbeddingLimits,
    max_queue: Cell<usize>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.abandoned.set(true);
        self.shared.wake.raise();
    }
}

impl fmt::Debug for EmbeddingHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddingHandle")
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

/// The vectors of a request, once they are computed. Dropping it cancels the request.
#[derive(Debug)]
pub struct Embeddings(oneshot::Receiver<Result<Vec<Vec<f32>>>>);

impl Embeddings {
    /// One vector per input.
    ///
    /// # Errors
    /// The error of the model; [`Error::DeviceLost`]; [`Error::Internal`] if the engine was stopped.
    pub async fn vectors(self) -> Result<Vec<Vec<f32>>> {
        let stopped = || Error::Internal("the engine was stopped".into());
        self.0.await.map_err(|_| stopped())?
    }
}

impl EmbeddingHandle {
    pub(super) fn new(shared: Rc<Shared>, limits: EmbeddingLimits, max_queue: usize) -> Self {
        let inner = Inner {
            shared,
            limits,
            max_queue: Cell::new(max_queue),
        };
        Self {
            inner: Rc::new(inner),
        }
    }

    /// Queues the inputs of one request, as one place in the queue.
    ///
    /// # Errors
    /// [`Error::Request`] for an input that is empty, exceeds the context or holds an id outside the vocabulary;
    /// [`Error::QueueFull`]; [`Error::DeviceLost`] after the loss of the device; [`Error::Internal`]
    /// without any input.
    pub fn submit(&self, inputs: Vec<impl Into<EmbeddingInput>>) -> Result<Embeddings> {
        let inputs: Vec<EmbeddingInput> = inputs.into_iter().map(Into::into).collect();
        let Inner {
            shared, max_queue, ..
        } = &*self.inner;
        if let Some(error) = &*shared.down.borrow() {
            return Err(error.clone());
        }
        if inputs.is_empty() {
            return Err(Error::Internal("a request without inputs".into()));
        }
        inputs.iter().try_for_each(|input| self.check(&input.ids))?;
        shared.purge();
        // An idle engine takes one request beyond the queue as soon as it is polled.
        let place = usize::from(!shared.is_running.get());
        let max_queue = max_queue.get();
        if shared.queue.borrow().len() >= max_queue.saturating_add(place) {
            return Err(Error::QueueFull { max_queue });
        }
        let (job, receiver) = Job::new(inputs);
        shared.queue.borrow_mut().push_back(job);
        shared.wake.raise();
        Ok(Embeddings(receiver))
    }

    /// Longest input in tokens.
    pub fn context_tokens(&self) -> usize {
        self.inner.limits.context_tokens
    }

    /// Every token id is below it.
    pub fn vocab_size(&self) -> usize {
        self.inner.limits.vocab_size
    }

    /// Elements of a vector.
    pub fn width(&self) -> usize {
        self.inner.limits.width
    }

    /// Requests that wait or run.
    pub fn active_requests(&self) -> usize {
        self.inner.shared.purge();
        let waiting = self.inner.shared.queue.borrow().len();
        waiting + usize::from(self.inner.shared.is_running.get())
    }

    /// Changes how many requests may wait from now on.
    pub fn set_max_queue(&self, max_queue: usize) {
        self.inner.max_queue.set(max_queue);
    }

    fn check(&self, input: &[u32]) -> Result<()> {
        let EmbeddingLimits {
            vocab_size,
            context_tokens,
            ..
        } = self.inner.limits;
        let refuse = |fault, message| {
            Err(Error::Request {
                fault,
                param: Some("input".into()),
                message,
            })
        };
        if input.is_empty() {
            return refuse(RequestFault::InvalidValue, "input has no tokens".into());
        }
        if let Some(id) = input.iter().find(|&&id| id as usize >= vocab_size) {
            let message = format!("input: token id {id} is not below {vocab_size}");
            return refuse(RequestFault::OutOfRange, message);
        }
        if input.len() > context_tokens {
            let sent = format!("The input has {} tokens", input.len());
            return Err(Error::exceeds_context("input", context_tokens, sent));
        }
        Ok(())
    }
}
