//! The loop: computes a batch of one request at a time. Requests take turns, so that a short one does not
//! wait for all inputs of a long one.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};

use super::handle::{EmbeddingHandle, Shared};
use super::job::{Job, check_vectors};
use super::model::EmbeddingModel;
use crate::engine::wake::yield_now;
use crate::{Error, Result};

/// Runs submitted requests on one model. Single-threaded: [`EmbeddingEngine::run`] is a task beside those
/// that submit through an [`EmbeddingHandle`].
pub struct EmbeddingEngine<M: EmbeddingModel> {
    model: M,
    shared: Rc<Shared>,
}

impl<M: EmbeddingModel> EmbeddingEngine<M> {
    /// An engine and its first handle; nothing happens until [`EmbeddingEngine::run`] is polled. At most
    /// `max_queue` requests wait.
    pub fn new(model: M, max_queue: usize) -> (Self, EmbeddingHandle) {
        let shared = Rc::new(Shared::default());
        let handle = EmbeddingHandle::new(shared.clone(), model.embedding_limits(), max_queue);
        (Self { model, shared }, handle)
    }

    /// Runs until all handles are dropped and all requests are answered. Dropping the future stops the
    /// engine: running and waiting requests fail, as does every later submit.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]: the device is gone, everything has failed.
    pub async fn run(mut self) -> Result<()> {
        loop {
            self.shared.purge();
            let job = self.shared.queue.borrow_mut().pop_front();
            match job {
                Some(job) => {
                    self.shared.is_running.set(true);
                    let result = self.take_turn(job).await;
                    self.shared.is_running.set(false);
                    result?;
                    yield_now().await;
                }
                None if self.shared.abandoned.get() => return Ok(()),
                None => self.shared.wake.raised().await,
            }
        }
    }

    /// Computes one batch. Afterwards the request is answered, or waits for its next turn.
    async fn take_turn(&mut self, mut job: Job) -> Result<()> {
        let limits = self.model.embedding_limits();
        let computed = {
            let (batch, cancelled) = job.turn(&limits);
            let embedding = pin!(self.model.embed(&batch));
            match select(embedding, pin!(cancelled)).await {
                Either::Left((vectors, _)) => vectors.and_then(|vectors| {
                    check_vectors(&vectors, batch.len(), limits.width).map(|()| vectors)
                }),
                Either::Right(_) => return Ok(()),
            }
        };
        match computed {
            Ok(vectors) => match job.add(vectors) {
                true => job.finish(Ok(())),
                false => self.shared.queue.borrow_mut().push_back(job),
            },
            Err(error @ Error::DeviceLost(_)) => {
                job.finish(Err(error.clone()));
                self.shut_down(&error);
                return Err(error);
            }
            Err(error) => job.finish(Err(error)),
        }
        Ok(())
    }

    /// Fails everything that waits, and every later submit.
    fn shut_down(&self, error: &Error) {
        let mut down = self.shared.down.borrow_mut();
        down.get_or_insert_with(|| error.clone());
        drop(down);
        // Taken out first: a reader that is woken may access the queue.
        let queue = std::mem::take(&mut *self.shared.queue.borrow_mut());
        for job in queue {
            job.finish(Err(error.clone()));
        }
    }
}

impl<M: EmbeddingModel> Drop for EmbeddingEngine<M> {
    fn drop(&mut self) {
        self.shut_down(&Error::Internal("the engine was stopped".into()));
    }
}
