//! A reserved place in the queue for a request whose prompts are not ready yet, and the memory that its images may hold meanwhile.

use std::fmt;
use std::rc::Rc;

use super::semaphore::Permit;
use super::shared::Shared;

/// Counts as a waiting request until it is dropped or used for [`submit_at`](super::EngineHandle::submit_at).
pub struct Reservation {
    shared: Rc<Shared>,
    sequences: usize,
    held: Option<Permit>,
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("sequences", &self.sequences)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl Reservation {
    pub(super) fn new(shared: Rc<Shared>, sequences: usize) -> Reservation {
        shared.reserved.borrow_mut().push(sequences);
        Reservation {
            shared,
            sequences,
            held: None,
        }
    }

    /// Waits until the images of waiting requests leave room for `bytes` of pixels. Requests have their turns in order. The
    /// room is held until the engine admits the request, or the place or the request is dropped.
    pub async fn hold(&mut self, bytes: u64) {
        self.held = None;
        self.held = Some(self.shared.image_bytes.acquire(bytes).await);
    }

    /// Gives the place up, but not the memory.
    pub(super) fn into_held(mut self) -> Option<Permit> {
        self.held.take()
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.shared.reserved.borrow_mut();
        // Places of as many sequences are alike.
        let index = reserved.iter().position(|it| *it == self.sequences);
        index.map(|index| reserved.swap_remove(index));
    }
}
