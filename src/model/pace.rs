//! The number of steps that are worth running on the device before their tokens are read.
//!
//! Tokens stay on the GPU. `argmax` writes the token id and position of the next step for a greedy sequence; the
//! kernels of `ops/sample` do so for a batch with any sampling parameters. Four whole steps are one submit. The engine
//! requests several steps at once (1, 2, 4, ... 16, bounded by the time of a read or 50 ms) and reads
//! their ids together. Tokens after a stop are discarded by lowering the sequence's length. The host owns each sampler
//! (`sample::Sampler`, which is the specification and the kernels' twin); the device keeps copies and updates stale
//! ones. The host samples where more than five best tokens are requested, where the sampling kernels do not validate,
//! and where barriers are expensive. A mask, of a constraint or of rules such as `min_tokens`
//! (`engine/token_rules.rs`), is uploaded as a bitset.

/// Readers wait at most this long for tokens that are already chosen.
const RUN_AHEAD_MS: f64 = 50.0;

/// The fixed time of a read, and the time of a step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    read_ms: f64,
    step_ms: f64,
}

impl Pace {
    /// A read from an idle device took `ms`: from 0.25 to 100 ms, depending on the browser. The
    /// minimum of several reads counts.
    pub fn note_read(&mut self, ms: f64) {
        self.read_ms = match self.read_ms > 0.0 {
            true => self.read_ms.min(ms),
            false => ms,
        };
    }

    /// `steps` (at least one) steps of one token and the read of the chosen tokens took `ms`.
    pub fn note_steps(&mut self, ms: f64, steps: usize) {
        self.step_ms = (ms - self.read_ms).max(0.0) / steps as f64;
    }

    /// Steps that delay a reader no longer than the read itself or 50 ms, whichever is longer;
    /// unlimited before the first measurement.
    pub fn run_ahead_steps(&self) -> usize {
        (self.read_ms.max(RUN_AHEAD_MS) / self.step_ms) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    fn steps(read_ms: f64, ms: f64, steps: usize) -> usize {
        let mut pace = Pace::default();
        pace.note_read(3.0 * read_ms);
        pace.note_read(read_ms);
        pace.note_steps(ms, steps);
        pace.run_ahead_steps()
    }

    #[test]
    fn slow_reads_do_not_pass_for_slow_steps() {
        assert_eq!(steps(100.0, 102.0, 1), 50);
        assert_eq!(steps(100.0, 99.0, 1), usize::MAX);
    }

    #[test]
    fn slow_steps_are_read_one_by_one() {
        assert_eq!(steps(1.0, 221.0, 1), 0);
        assert_eq!(steps(1.0, 81.0, 8), 5);
    }

    #[test]
    fn nothing_is_held_back_before_it_was_measured() {
        assert_eq!(Pace::default().run_ahead_steps(), usize::MAX);
    }
}
