//! What the handles and the engine's task share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::banker::Amount;
use super::events::Activity;
use super::job::Job;
use super::preparation::Preparations;
use crate::Error;

/// State shared on one thread; no borrow of it outlives a call.
#[derive(Default)]
pub(super) struct Shared {
    /// The waiting requests in order of arrival. Cancelled requests stay here until the queue is purged.
    pub(super) queue: RefCell<VecDeque<Job>>,
    /// Prompts to feed while the engine is idle.
    pub(super) preparations: RefCell<Preparations>,
    /// Sequences of the requests that the engine has taken from the queue and not ended.
    pub(super) running_sequences: Cell<usize>,
    /// Memory that no sequence holds.
    pub(super) free: Cell<Amount>,
    /// Changes to the model that wait or run. Until they are done no request is admitted.
    pub(super) changes: Cell<usize>,
    /// All handles are gone.
    pub(super) abandoned: Cell<bool>,
    /// Set once the device is lost or the engine has stopped; nothing runs after that.
    pub(super) down: RefCell<Option<Error>>,
    pub(super) activity: Rc<Activity>,
}

impl Shared {
    /// Whether a new request would have to wait for a place in the batch, behind `max_queue` others. Those that will have
    /// a place as soon as the engine is polled do not wait.
    pub(super) fn is_full(&self, max_queue: usize, max_batch: usize) -> bool {
        let mut places = max_batch.saturating_sub(self.running_sequences.get());
        let mut waiting = 0;
        for job in self.queue.borrow().iter() {
            match places {
                0 => waiting += 1,
                _ => places = places.saturating_sub(job.open_sequences()),
            }
        }
        places == 0 && waiting >= max_queue
    }

    /// Removes cancelled requests from the queue.
    pub(super) fn purge_queue(&self) {
        self.queue.borrow_mut().retain(|job| !job.is_over());
    }
}
