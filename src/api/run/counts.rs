//! The numbers of a request: its tokens and its times.

/// The time that a request took so far, and its tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct PerfMetrics {
    pub counts: TokenCounts,
    pub first_token_ms: u64,
    pub total_ms: u64,
}

/// Tokens of a request or of a part of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct TokenCounts {
    pub prompt: usize,
    /// Prompt tokens that were found in the prefix cache.
    pub cached: usize,
    pub completion: usize,
    /// The number of tokens of the completion that are reasoning.
    pub reasoning: usize,
    /// The tokens of the predictions; `None` if the request has no prediction.
    pub predicted: Option<PredictedTokens>,
}

/// Tokens of the predictions of all candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct PredictedTokens {
    /// The tokens that the completions have where they are expected.
    pub accepted: usize,
    /// The other tokens of the predictions.
    pub rejected: usize,
}
