//! Framing of server-sent events (specification 10.2, 10.7, 10.8) and the comment that keeps a silent
//! stream alive.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::api::host::Host;

/// The event after the last one.
pub(in crate::api) const DONE: &[u8] = b"data: [DONE]\n\n";

const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// One event; `json` has no raw newlines.
pub(in crate::api) fn event(json: &[u8]) -> Vec<u8> {
    debug_assert!(!json.contains(&b'\n'), "an event is one line");
    [b"data: ", json, b"\n\n"].concat()
}

/// Same as [`event`], with a name.
pub(in crate::api) fn named_event(name: &str, json: &[u8]) -> Vec<u8> {
    [b"event: ", name.as_bytes(), b"\n", &event(json)[..]].concat()
}

type Bytes = Pin<Box<dyn Stream<Item = Vec<u8>>>>;

/// Forwards `inner` and sends a comment whenever nothing was sent for `interval_ms`.
pub(in crate::api) struct KeepAlive {
    inner: Bytes,
    host: Rc<dyn Host>,
    interval_ms: u32,
    /// The timer for the end of the current interval, set when the stream first waits. Restarting it with every
    /// event would cost a timer per token; instead, when it fires early, it is set again for the rest.
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
    last_sent_ms: u64,
}

impl KeepAlive {
    /// An `interval_ms` of 0 never sends a comment.
    pub(in crate::api) fn new(inner: Bytes, host: Rc<dyn Host>, interval_ms: u32) -> KeepAlive {
        KeepAlive {
            inner,
            last_sent_ms: host.now_ms(),
            host,
            interval_ms,
            timer: None,
        }
    }

    /// The rest of the current interval.
    fn left_ms(&self) -> u32 {
        let silent_ms = self.host.now_ms().saturating_sub(self.last_sent_ms);
        u32::try_from(silent_ms).map_or(0, |silent_ms| self.interval_ms.saturating_sub(silent_ms))
    }
}

impl Stream for KeepAlive {
    type Item = Vec<u8>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let this = &mut *self;
        if let Poll::Ready(item) = this.inner.as_mut().poll_next(context) {
            this.last_sent_ms = this.host.now_ms();
            return Poll::Ready(item);
        }
        if this.interval_ms == 0 {
            return Poll::Pending;
        }
        loop {
            if let Some(timer) = &mut this.timer {
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.timer = None;
                if this.left_ms() == 0 {
                    this.last_sent_ms = this.host.now_ms();
                    return Poll::Ready(Some(KEEP_ALIVE.to_vec()));
                }
            }
            // Timers may fire a little early; at least 1 ms keeps this loop from spinning.
            this.timer = Some(this.host.sleep_ms(this.left_ms().max(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use futures_channel::{mpsc, oneshot};
    use futures_util::{FutureExt, StreamExt};

    use super::*;
    use crate::engine::Clock;

    /// A clock that the test moves; it has at most one timer.
    #[derive(Default)]
    struct ManualHost {
        now_ms: Cell<u64>,
        timer: RefCell<Option<(u64, oneshot::Sender<()>)>>,
    }

    impl ManualHost {
        fn advance(&self, duration_ms: u64) {
            self.now_ms.set(self.now_ms.get() + duration_ms);
            let due = |timer: &mut (u64, _)| timer.0 <= self.now_ms.get();
            if let Some((_, sender)) = self.timer.borrow_mut().take_if(due) {
                sender.send(()).unwrap();
            }
        }
    }

    impl Clock for ManualHost {
        fn now_ms(&self) -> u64 {
            self.now_ms.get()
        }
        fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
            let (sender, receiver) = oneshot::channel();
            let end_ms = self.now_ms.get() + u64::from(duration_ms);
            let old = self.timer.borrow_mut().replace((end_ms, sender));
            assert!(old.is_none(), "one timer at a time");
            Box::pin(async {
                let _ = receiver.await;
            })
        }
    }

    impl Host for ManualHost {
        fn warn(&self, _: &str) {}
    }

    #[test]
    fn events_are_framed() {
        assert_eq!(event(b"{}"), b"data: {}\n\n");
    }

    #[test]
    fn comments_fill_silence_and_events_postpone_them() {
        let comment = Some(Some(KEEP_ALIVE.to_vec()));
        let host = Rc::new(ManualHost::default());
        let (sender, receiver) = mpsc::unbounded();
        let mut stream = KeepAlive::new(Box::pin(receiver), host.clone(), 10);

        assert_eq!(stream.next().now_or_never(), None);
        host.advance(9);
        assert_eq!(stream.next().now_or_never(), None);
        host.advance(1);
        assert_eq!(stream.next().now_or_never(), comment);
        assert_eq!(stream.next().now_or_never(), None);

        host.advance(4);
        sender.unbounded_send(b"x".to_vec()).unwrap();
        assert_eq!(stream.next().now_or_never(), Some(Some(b"x".to_vec())));
        host.advance(6);
        assert_eq!(stream.next().now_or_never(), None, "6 ms after the event");
        host.advance(4);
        assert_eq!(stream.next().now_or_never(), comment, "10 ms after it");

        drop(sender);
        assert_eq!(stream.next().now_or_never(), Some(None));
    }

    #[test]
    fn an_interval_of_zero_sends_no_comments() {
        let host = Rc::new(ManualHost::default());
        let (_sender, receiver) = mpsc::unbounded();
        let mut stream = KeepAlive::new(Box::pin(receiver), host.clone(), 0);
        assert_eq!(stream.next().now_or_never(), None);
        assert!(host.timer.borrow().is_none());
    }
}
