//! The time that a request may keep others waiting while it waits for its own reader.
//!
//! Apart from this and its time limit, a request ends only when its reader drops it.

/// The longest that it may, from its start on.
pub(super) const PATIENCE_MS: u64 = 10_000;

/// A step for the request restores this many times its duration. So a request whose reader is slow delays others by a
/// multiple of its work, and not by the number of its events.
const RESTORED_PER_STEP: u64 = 3;

/// The rest of this time.
#[derive(Debug)]
pub(super) struct Patience {
    left_ms: u64,
    /// The time since which it runs out.
    runs_since_ms: Option<u64>,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            left_ms: PATIENCE_MS,
            runs_since_ms: None,
        }
    }
}

impl Patience {
    /// Starts or pauses the countdown.
    pub(super) fn run(&mut self, runs: bool, now_ms: u64) {
        if let Some(since_ms) = self.runs_since_ms {
            let ran_ms = now_ms.saturating_sub(since_ms);
            self.left_ms = self.left_ms.saturating_sub(ran_ms);
        }
        self.runs_since_ms = runs.then_some(now_ms);
    }

    /// The time when it will have run out.
    pub(super) fn end_ms(&self) -> Option<u64> {
        let since_ms = self.runs_since_ms?;
        Some(since_ms.saturating_add(self.left_ms))
    }

    /// A step for the request took `duration_ms`.
    pub(super) fn restore(&mut self, duration_ms: u64) {
        let restored_ms = duration_ms.saturating_mul(RESTORED_PER_STEP);
        self.left_ms = self.left_ms.saturating_add(restored_ms).min(PATIENCE_MS);
    }
}
