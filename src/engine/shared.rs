//! The state that the handles and the engine's task share.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::banker::Amount;
use super::events::Activity;
use super::job::Job;
use super::preparation::Preparations;
use super::semaphore::Semaphore;
use crate::Error;

/// The maximum number of bytes of pixels of the requests that wait. A request that has more waits until no other one has any.
const MAX_IMAGE_BYTES: u64 = 128 << 20;

/// State shared on one thread; no borrow of it outlives a call.
pub(super) struct Shared {
    /// The waiting requests in order of arrival. Cancelled requests stay here until the queue is purged.
    pub(super) queue: RefCell<VecDeque<Job>>,
    /// The sequences of each request that waits and is not in the queue yet.
    pub(super) reserved: RefCell<Vec<usize>>,
    /// Bytes of pixels that the waiting requests hold.
    pub(super) image_bytes: Semaphore,
    /// Prompts to feed while the engine is idle.
    pub(super) preparations: RefCell<Preparations>,
    /// Sequences of the requests that the engine has taken from the queue and not ended.
    pub(super) running_sequences: Cell<usize>,
    /// Memory that no sequence holds.
    pub(super) free: Cell<Amount>,
    /// Changes to the model that wait or run. Until they are done no request is admitted.
    pub(super) changes: Cell<usize>,
    /// Whether all handles are gone.
    pub(super) abandoned: Cell<bool>,
    /// The reason why nothing runs any more: the device is lost or the engine has stopped.
    pub(super) down: RefCell<Option<Error>>,
    pub(super) activity: Rc<Activity>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            queue: RefCell::default(),
            reserved: RefCell::default(),
            image_bytes: Semaphore::new(MAX_IMAGE_BYTES),
            preparations: RefCell::default(),
            running_sequences: Cell::default(),
            free: Cell::default(),
            changes: Cell::default(),
            abandoned: Cell::default(),
            down: RefCell::default(),
            activity: Rc::default(),
        }
    }
}

impl Shared {
    /// Whether a new request would have to wait for a place in the batch, behind `max_queue` others. Those that will have
    /// a place as soon as the engine is polled do not wait.
    pub(super) fn is_full(&self, max_queue: usize, max_batch: usize) -> bool {
        let mut places = max_batch.saturating_sub(self.running_sequences.get());
        let mut waiting = 0;
        let queue = self.queue.borrow();
        let reserved = self.reserved.borrow();
        let queued = queue.iter().map(Job::open_sequences);
        for sequences in queued.chain(reserved.iter().copied()) {
            match places {
                0 => waiting += 1,
                _ => places = places.saturating_sub(sequences),
            }
        }
        places == 0 && waiting >= max_queue
    }

    /// Removes cancelled requests from the queue.
    pub(super) fn purge_queue(&self) {
        let mut queue = self.queue.borrow_mut();
        let mut over = Vec::new();
        for index in (0..queue.len()).rev() {
            if queue[index].is_over() {
                over.extend(queue.remove(index));
            }
        }
        // Dropped after the borrow: a request that waits for their memory is woken, and may access the queue.
        drop(queue);
    }
}
