//! Lets the engine's task sleep and yield.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A flag that one task waits for. If it is raised before the wait, that is not lost.
#[derive(Debug, Default)]
pub(super) struct WakeFlag {
    raised: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl WakeFlag {
    pub(super) fn raise(&self) {
        self.raised.set(true);
        // Taken out before waking: the waker may run code that calls this function again.
        let waker = self.waiting.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until the flag is raised and lowers it.
    pub(super) async fn raised(&self) {
        poll_fn(|context| {
            if self.raised.replace(false) {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Lets the executor's other tasks run once.
pub(super) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
