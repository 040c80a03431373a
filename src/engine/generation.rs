//! What one choice asks of the engine, in token ids. Knows nothing of text or JSON.

pub use crate::sample::SamplingParams;

/// One choice to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The prompt's token ids, at least one, all below the vocabulary size.
    pub prompt: Vec<u32>,
    /// Upper bound on generated tokens; already shortened to what the context can hold.
    pub max_tokens: usize,
    /// How to choose each token.
    pub sampling: SamplingParams,
    /// Ids that end the choice with [`super::event::FinishReason::Stop`]: the model's end-of-text
    /// ids (unless `ignore_eos`) and single-token stop strings.
    pub stop_ids: Vec<u32>,
}
