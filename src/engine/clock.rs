//! The time by which the engine ends requests. Its callers implement it.
//!
//! The engine keeps the time. A reader that stalls polls nothing, so it cannot end its own request. Patience with it
//! runs out only while others wait, and steps for the request restore it, so a slow reader costs others a multiple of
//! its request's own work and not of its events. The candidates of a request share the places for unread events, but
//! each keeps one: a candidate that is not read cannot block another.

use std::future::Future;
use std::pin::Pin;

use crate::Error;

/// The time and timers.
pub trait Clock {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Milliseconds, with fractions, of a clock that is never set back: for the times of steps.
    fn monotonic_ms(&self) -> f64 {
        self.now_ms() as f64
    }
    /// Completes after `duration_ms`.
    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The time when a request ends with an error if it has not ended before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimit {
    /// The end of the period, in milliseconds since 1970.
    pub end_ms: u64,
    /// The time that the request was allowed to take.
    pub timeout_ms: u32,
}

impl TimeLimit {
    /// The error of a request whose time is up.
    pub fn error(self) -> Error {
        let Self { timeout_ms, .. } = self;
        Error::Internal(format!("the request took longer than {timeout_ms} ms"))
    }
}
