//! How long steps take, and how many drafted tokens are worth verifying. It decides when tokens are
//! chosen, never which.

/// Steps with these numbers of rows are measured and used.
const ROWS: [usize; 3] = [2, 4, 8];
/// Most rows of a step that verifies a draft.
pub(super) const MAX_ROWS: usize = ROWS[ROWS.len() - 1];

/// A mean that forgets.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    ms: f64,
    count: f64,
    /// The first measurement includes what is prepared once, such as kernels.
    has_begun: bool,
    /// Decisions since the last measurement.
    age: usize,
}

impl Mean {
    fn note(&mut self, ms: f64, count: f64) {
        const KEPT: f64 = 0.9;
        self.age = 0;
        if !std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        self.ms = self.ms * KEPT + ms;
        self.count = self.count * KEPT + count;
    }

    /// `None` before the first measurement, and once it is so old that it may be wrong.
    fn get(self) -> Option<f64> {
        const MAX_AGE: usize = 512;
        (self.count > 0.0 && self.age < MAX_AGE).then(|| self.ms / self.count)
    }
}

/// The work of a step for the only sequence that could continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Chose this many tokens, each fed by itself.
    Tokens(usize),
    /// Fed this many rows at once to verify a draft.
    Rows(usize),
}

/// The measured times of an engine's steps.
#[derive(Debug, Default)]
pub(super) struct Costs {
    token: Mean,
    rows: [Mean; ROWS.len()],
}

impl Costs {
    /// A step took `ms`.
    pub(super) fn note(&mut self, work: Work, ms: u64) {
        let ms = ms as f64;
        match work {
            Work::Tokens(tokens) => self.token.note(ms, tokens as f64),
            Work::Rows(rows) => {
                if let Some(at) = ROWS.iter().position(|size| *size == rows) {
                    self.rows[at].note(ms, 1.0);
                }
            }
        }
    }

    /// The number of the `available` drafted tokens to verify, each of which is right with the probability `acceptance` if those
    /// before it are. It is 0 if tokens come sooner one by one, and while the time of one is unknown. Sizes that were not measured are tried.
    pub(super) fn worth_verifying(&mut self, available: usize, acceptance: f64) -> usize {
        let Some(token_ms) = self.token.get() else {
            return 0;
        };
        self.token.age += 1;
        let mut best = (1.0, 0);
        for (mean, rows) in self.rows.iter_mut().zip(ROWS) {
            if rows > available + 1 {
                break;
            }
            mean.age += 1;
            // The right tokens and the one after them.
            let tokens: f64 = (0..rows).map(|right| acceptance.powi(right as i32)).sum();
            let cost = match mean.get() {
                Some(step_ms) if token_ms > 0.0 => step_ms / token_ms,
                _ => 1.0,
            };
            if tokens / cost > best.0 {
                best = (tokens / cost, rows - 1);
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs with so many milliseconds per token and per step of 2, 4 and 8 rows.
    fn costs(token_ms: u64, rows_ms: [u64; 3]) -> Costs {
        let mut costs = Costs::default();
        for _ in 0..2 {
            costs.note(Work::Tokens(4), 4 * token_ms);
            for (rows, ms) in ROWS.into_iter().zip(rows_ms) {
                costs.note(Work::Rows(rows), ms);
            }
        }
        costs
    }

    #[test]
    fn what_was_not_measured_is_tried() {
        let mut costs = Costs::default();
        assert_eq!(costs.worth_verifying(20, 0.9), 0, "nothing to compare with");
        for _ in 0..2 {
            costs.note(Work::Tokens(1), 10);
        }
        assert_eq!(costs.worth_verifying(20, 0.5), 7);
        assert_eq!(costs.worth_verifying(6, 0.5), 3);
        assert_eq!(costs.worth_verifying(1, 0.5), 1);
        assert_eq!(costs.worth_verifying(0, 0.5), 0);
    }

    #[test]
    fn free_rows_are_used_and_expensive_ones_are_not() {
        assert_eq!(costs(10, [10, 10, 10]).worth_verifying(7, 0.3), 7);
        assert_eq!(costs(10, [12, 20, 60]).worth_verifying(7, 0.9), 3);
        assert_eq!(costs(10, [12, 20, 60]).worth_verifying(7, 0.4), 1);
        assert_eq!(costs(10, [20, 40, 80]).worth_verifying(7, 0.9), 0);
        assert_eq!(costs(10, [12, 20, 60]).worth_verifying(7, 0.1), 0);
    }

    #[test]
    fn the_first_measurement_does_not_count() {
        let mut costs = costs(10, [11, 11, 11]);
        costs.rows[2] = Mean::default();
        costs.note(Work::Rows(8), 10_000);
        assert_eq!(costs.worth_verifying(7, 0.9), 7);
        costs.note(Work::Rows(8), 1000);
        assert_eq!(costs.worth_verifying(7, 0.9), 3);
    }

    #[test]
    fn an_old_measurement_is_repeated() {
        let mut costs = costs(10, [11, 11, 1000]);
        let tried = |costs: &mut Costs| costs.worth_verifying(7, 0.9) == 7;
        assert_eq!((0..600).position(|_| tried(&mut costs)), Some(511));
        costs.note(Work::Tokens(1), 10);
        costs.note(Work::Rows(8), 1000);
        assert!(!tried(&mut costs));
    }

    #[test]
    fn an_old_time_of_a_token_is_measured_again() {
        let mut costs = costs(10, [10, 10, 10]);
        let mut counts = (0..600).map(|_| costs.worth_verifying(7, 0.9));
        assert_eq!(counts.position(|count| count == 0), Some(512));
        costs.note(Work::Tokens(1), 10);
        assert_eq!(costs.worth_verifying(7, 0.9), 7);
    }
}
