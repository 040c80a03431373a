//! The time that a request which is refused for now should wait before it comes again (`Retry-After`), judged by what loads and
//! requests have taken so far.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::host::Host;

/// SDKs ignore larger values.
const MAX_S: u32 = 60;

/// A load whose progress is unknown is not expected to end sooner.
const UNKNOWN_LOAD_MS: f64 = 5000.0;

/// A share of the model below which its rate says nothing yet.
const MIN_SHARE: f64 = 0.02;

/// Rates vary: an estimate that is a little too long saves a retry.
const MARGIN: f64 = 1.25;

/// Share of the newest duration in the mean.
const NEWEST: f64 = 0.25;

fn seconds(wait_ms: f64) -> u32 {
    let wait_s = (wait_ms / 1000.0).ceil();
    (wait_s as u32).clamp(1, MAX_S)
}

/// A load: when it began, and how much of the model was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoadPace {
    pub started_ms: u64,
    /// 0 to 1.
    pub share: f64,
}

impl LoadPace {
    /// Seconds until it is expected to end. What is unknown is expected to take as long again as it has taken.
    pub(super) fn retry_after_s(&self, now_ms: u64) -> u32 {
        let elapsed_ms = now_ms.saturating_sub(self.started_ms) as f64;
        if self.share < MIN_SHARE {
            return seconds(elapsed_ms.max(UNKNOWN_LOAD_MS));
        }
        let rest_ms = elapsed_ms * (1.0 - self.share) / self.share;
        seconds(rest_ms * MARGIN)
    }
}

/// The requests of the endpoint: a full queue is expected to move within the time that a request takes.
#[derive(Debug, Default)]
pub(super) struct RequestPace {
    mean_ms: Cell<Option<f64>>,
    /// The start of the first request, until one has ended.
    first_started_ms: Cell<Option<u64>>,
}

impl RequestPace {
    /// A request was admitted.
    fn begin(&self, now_ms: u64) {
        if self.first_started_ms.get().is_none() {
            self.first_started_ms.set(Some(now_ms));
        }
    }

    /// A request has ended, completed or not.
    fn end(&self, duration_ms: u64) {
        let newest = duration_ms as f64;
        let mean = match self.mean_ms.get() {
            Some(mean) => mean + (newest - mean) * NEWEST,
            None => newest,
        };
        self.mean_ms.set(Some(mean));
    }

    /// Seconds until the queue is expected to have room.
    pub(super) fn retry_after_s(&self, now_ms: u64) -> u32 {
        let so_far = |started_ms| now_ms.saturating_sub(started_ms) as f64;
        let wait_ms = self
            .mean_ms
            .get()
            .or(self.first_started_ms.get().map(so_far));
        seconds(wait_ms.unwrap_or_default())
    }
}

/// Measures a request from its admission until it is dropped.
pub(super) struct RequestTimer {
    pace: Rc<RequestPace>,
    host: Rc<dyn Host>,
    started_ms: u64,
}

impl fmt::Debug for RequestTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTimer")
            .field("started_ms", &self.started_ms)
            .finish_non_exhaustive()
    }
}

impl RequestTimer {
    /// The request was admitted now.
    pub(super) fn start(pace: &Rc<RequestPace>, host: &Rc<dyn Host>) -> RequestTimer {
        let started_ms = host.now_ms();
        pace.begin(started_ms);
        RequestTimer {
            pace: pace.clone(),
            host: host.clone(),
            started_ms,
        }
    }
}

impl Drop for RequestTimer {
    fn drop(&mut self) {
        self.pace
            .end(self.host.now_ms().saturating_sub(self.started_ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(share: f64, elapsed_ms: u64) -> u32 {
        let pace = LoadPace {
            started_ms: 1000,
            share,
        };
        pace.retry_after_s(1000 + elapsed_ms)
    }

    #[test]
    fn the_rest_of_a_load_follows_its_rate() {
        assert_eq!(load(0.5, 20_000), 25);
        assert_eq!(load(0.8, 20_000), 7);
        assert_eq!(load(1.0, 20_000), 1);
        assert_eq!(load(0.1, 100_000), 60, "SDKs ignore more");
    }

    #[test]
    fn an_unknown_load_takes_as_long_again() {
        assert_eq!(load(0.0, 0), 5);
        assert_eq!(load(0.001, 12_000), 12);
        assert_eq!(load(0.0, 900_000), 60);
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_harm() {
        let pace = LoadPace {
            started_ms: 9000,
            share: 0.5,
        };
        assert_eq!(pace.retry_after_s(1000), 1);
    }

    #[test]
    fn a_full_queue_moves_within_the_time_of_a_request() {
        let pace = RequestPace::default();
        assert_eq!(pace.retry_after_s(5000), 1);
        pace.begin(5000);
        pace.begin(7000);
        assert_eq!(pace.retry_after_s(9000), 4, "none has ended yet");
        pace.end(8000);
        assert_eq!(pace.retry_after_s(99_000), 8);
        pace.end(16_000);
        assert_eq!(pace.retry_after_s(99_000), 10);
        (0..40).for_each(|_| pace.end(200));
        assert_eq!(pace.retry_after_s(99_000), 1);
        pace.end(u64::MAX);
        assert_eq!(pace.retry_after_s(99_000), 60);
    }
}
