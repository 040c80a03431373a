//! The number of tokens that the model is asked for in one step.

/// Starts at one token, so that the first arrives promptly, and doubles up to a limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunAhead {
    next: usize,
    limit: usize,
}

impl RunAhead {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            next: 1,
            limit: limit.max(1),
        }
    }

    /// Steps for the next call.
    pub(super) fn steps(&self) -> usize {
        self.next
    }

    /// A call succeeded; `most` is the model's
    /// [`run_ahead_steps`](super::CausalModel::run_ahead_steps).
    pub(super) fn grow(&mut self, most: usize) {
        self.next = (self.next * 2).min(self.limit).min(most.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::RunAhead;

    #[test]
    fn doubles_up_to_the_limit() {
        let mut run_ahead = RunAhead::new(12);
        let mut seen = vec![];
        for _ in 0..6 {
            seen.push(run_ahead.steps());
            run_ahead.grow(100);
        }
        assert_eq!(seen, [1, 2, 4, 8, 12, 12]);
        run_ahead.grow(5);
        assert_eq!(run_ahead.steps(), 5);
        run_ahead.grow(0);
        assert_eq!(run_ahead.steps(), 1);
    }
}
