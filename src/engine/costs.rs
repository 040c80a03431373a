//! Measures the times of steps, and computes from them the number of drafted tokens that are worth verifying. It decides
//! when tokens are chosen, never which.

/// Steps with these numbers of rows are measured and used.
const ROWS: [usize; 3] = [2, 4, 8];
/// The maximum number of rows of a step that verifies a draft.
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

/// The source of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Text that is known before the step: drafting takes no time.
    Text,
    /// The model, which drafts during the step: its time counts for the step.
    Model,
}

/// A draft that could be verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) source: Source,
    /// Tokens that it has at most.
    pub(super) tokens: usize,
    /// The probability that a token of it is right if those before it are.
    pub(super) acceptance: f64,
}

/// The work of a step for the only sequence that could continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Chose this many tokens, each fed by itself.
    Tokens(usize),
    /// Fed this many rows at once to verify a draft.
    Rows(Source, usize),
}

/// The measured times of an engine's steps.
#[derive(Debug, Default)]
pub(super) struct Costs {
    token: Mean,
    /// Steps that verify known text.
    text_rows: [Mean; ROWS.len()],
    /// Steps that verify drafts of the model.
    model_rows: [Mean; ROWS.len()],
}

impl Costs {
    /// A step took `ms`, which may be a fraction of a millisecond.
    pub(super) fn note(&mut self, work: Work, ms: f64) {
        match work {
            Work::Tokens(tokens) => self.token.note(ms, tokens as f64),
            Work::Rows(source, rows) => {
                if let Some(at) = ROWS.iter().position(|size| *size == rows) {
                    self.rows_of(source)[at].note(ms, 1.0);
                }
            }
        }
    }

    /// The offer to take and how many of its tokens to verify. `None` if tokens come sooner one by one, and while the time
    /// of one is unknown. Sizes that were not measured are tried.
    pub(super) fn best(&mut self, offers: &[Offer]) -> Option<(Source, usize)> {
        let token_ms = self.token.get()?;
        self.token.age += 1;
        let mut best = (1.0, None);
        for offer in offers {
            for (mean, rows) in self.rows_of(offer.source).iter_mut().zip(ROWS) {
                if rows > offer.tokens + 1 {
                    break;
                }
                mean.age += 1;
                // The right tokens and the one after them.
                let right = (0..rows).map(|right| offer.acceptance.powi(right as i32));
                let cost = match mean.get() {
                    Some(step_ms) if token_ms > 0.0 => step_ms / token_ms,
                    _ => 1.0,
                };
                let gain = right.sum::<f64>() / cost;
                if gain > best.0 {
                    best = (gain, Some((offer.source, rows - 1)));
                }
            }
        }
        best.1
    }

    fn rows_of(&mut self, source: Source) -> &mut [Mean; ROWS.len()] {
        match source {
            Source::Text => &mut self.text_rows,
            Source::Model => &mut self.model_rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Costs {
        /// The number of tokens of a known text that are worth verifying.
        fn worth_verifying(&mut self, tokens: usize, acceptance: f64) -> usize {
            let offer = Offer {
                source: Source::Text,
                tokens,
                acceptance,
            };
            self.best(&[offer]).map_or(0, |(_, count)| count)
        }
    }

    /// Costs with these milliseconds per token and per step of 2, 4 and 8 rows.
    fn costs(token_ms: f64, rows_ms: [f64; 3]) -> Costs {
        let mut costs = Costs::default();
        for _ in 0..2 {
            costs.note(Work::Tokens(4), 4.0 * token_ms);
            for (rows, ms) in ROWS.into_iter().zip(rows_ms) {
                costs.note(Work::Rows(Source::Text, rows), ms);
            }
        }
        costs
    }

    #[test]
    fn what_was_not_measured_is_tried() {
        let mut costs = Costs::default();
        assert_eq!(costs.worth_verifying(20, 0.9), 0, "nothing to compare with");
        for _ in 0..2 {
            costs.note(Work::Tokens(1), 10.0);
        }
        assert_eq!(costs.worth_verifying(20, 0.5), 7);
        assert_eq!(costs.worth_verifying(6, 0.5), 3);
        assert_eq!(costs.worth_verifying(1, 0.5), 1);
        assert_eq!(costs.worth_verifying(0, 0.5), 0);
    }

    #[test]
    fn free_rows_are_used_and_expensive_ones_are_not() {
        assert_eq!(costs(10.0, [10.0, 10.0, 10.0]).worth_verifying(7, 0.3), 7);
        assert_eq!(costs(10.0, [12.0, 20.0, 60.0]).worth_verifying(7, 0.9), 3);
        assert_eq!(costs(10.0, [12.0, 20.0, 60.0]).worth_verifying(7, 0.4), 1);
        assert_eq!(costs(10.0, [20.0, 40.0, 80.0]).worth_verifying(7, 0.9), 0);
        assert_eq!(costs(10.0, [12.0, 20.0, 60.0]).worth_verifying(7, 0.1), 0);
    }

    #[test]
    fn the_first_measurement_does_not_count() {
        let mut costs = costs(10.0, [11.0, 11.0, 11.0]);
        costs.text_rows[2] = Mean::default();
        costs.note(Work::Rows(Source::Text, 8), 10_000.0);
        assert_eq!(costs.worth_verifying(7, 0.9), 7);
        costs.note(Work::Rows(Source::Text, 8), 1000.0);
        assert_eq!(costs.worth_verifying(7, 0.9), 3);
    }

    #[test]
    fn an_old_measurement_is_repeated() {
        let mut costs = costs(10.0, [11.0, 11.0, 1000.0]);
        let tried = |costs: &mut Costs| costs.worth_verifying(7, 0.9) == 7;
        assert_eq!((0..600).position(|_| tried(&mut costs)), Some(511));
        costs.note(Work::Tokens(1), 10.0);
        costs.note(Work::Rows(Source::Text, 8), 1000.0);
        assert!(!tried(&mut costs));
    }

    #[test]
    fn an_old_time_of_a_token_is_measured_again() {
        let mut costs = costs(10.0, [10.0, 10.0, 10.0]);
        let mut counts = (0..600).map(|_| costs.worth_verifying(7, 0.9));
        assert_eq!(counts.position(|count| count == 0), Some(512));
        costs.note(Work::Tokens(1), 10.0);
        assert_eq!(costs.worth_verifying(7, 0.9), 7);
    }

    #[test]
    fn fractions_of_a_millisecond_count() {
        assert_eq!(costs(0.25, [0.3, 0.4, 2.5]).worth_verifying(7, 0.8), 3);
    }

    #[test]
    fn the_source_that_gains_more_is_taken() {
        let mut costs = costs(10.0, [12.0, 14.0, 20.0]);
        for (rows, ms) in ROWS.into_iter().zip([15.0, 30.0, 60.0]) {
            for _ in 0..2 {
                costs.note(Work::Rows(Source::Model, rows), ms);
            }
        }
        let mut best = |text: f64, model: f64| {
            let offer = |source, acceptance| Offer {
                source,
                tokens: 7,
                acceptance,
            };
            costs.best(&[offer(Source::Text, text), offer(Source::Model, model)])
        };
        assert_eq!(best(0.9, 0.9), Some((Source::Text, 7)));
        assert_eq!(best(0.1, 0.8), Some((Source::Model, 1)));
        assert_eq!(best(0.1, 0.1), None);
    }
}
