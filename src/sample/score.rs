//! What is told of a token's probability (API.md section 7). Natural logarithms; nothing of text.

/// The probability of one token at its position, and the best others.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenScore {
    /// The token.
    pub id: u32,
    /// Its log-probability in the wanted distribution, at most 0; may be `-inf`.
    pub logprob: f32,
    /// Its log-probability in the raw distribution (stage 0), by which best_of ranks.
    pub raw_logprob: f32,
    /// The best tokens of the wanted distribution, descending, lower ids first on ties. As many as
    /// were asked for; the token itself only if it is one of them, then with the same number.
    pub top: Vec<(u32, f32)>,
}

/// Which distribution log-probabilities describe (API.md section 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogprobsMode {
    /// Stage 0: the model's own.
    #[default]
    Raw,
    /// Stage 7b: after bias, penalties, mask and temperature (greedy: a temperature of 1).
    Processed,
}

/// What to tell of every chosen token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScoreRequest {
    /// How many best tokens.
    pub top: usize,
    /// Of which distribution.
    pub mode: LogprobsMode,
}
