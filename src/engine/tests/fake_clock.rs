//! A clock that the test moves.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;

use futures_channel::oneshot;

use super::super::Clock;

#[derive(Default)]
pub(super) struct FakeClock {
    now_ms: Cell<u64>,
    timers: RefCell<Vec<(u64, oneshot::Sender<()>)>>,
}

impl FakeClock {
    /// Moves the time and completes the timers that are due.
    pub(super) fn advance(&self, duration_ms: u64) {
        self.now_ms.set(self.now_ms.get() + duration_ms);
        let is_due = |timer: &mut (u64, _)| timer.0 <= self.now_ms.get();
        let due: Vec<_> = self.timers.borrow_mut().extract_if(.., is_due).collect();
        for (_, timer) in due {
            // An error means that the timer was dropped.
            let _ = timer.send(());
        }
    }

    /// The timers that somebody waits for.
    pub(super) fn timers(&self) -> usize {
        let timers = self.timers.borrow();
        timers.iter().filter(|(_, it)| !it.is_canceled()).count()
    }
}

impl Clock for FakeClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        let (sender, receiver) = oneshot::channel();
        let end_ms = self.now_ms.get() + u64::from(duration_ms);
        self.timers.borrow_mut().push((end_ms, sender));
        Box::pin(async {
            let _ = receiver.await;
        })
    }
}
