//! The contract with a model that embeds.

use crate::Result;

/// Sizes of an embedding model that do not change while an engine owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingLimits {
    /// Every token id is below it.
    pub vocab_size: usize,
    /// Longest input, in tokens.
    pub context_tokens: usize,
    /// Elements of a vector.
    pub width: usize,
    /// The maximum number of tokens of inputs that are computed together. A longer input is computed by itself.
    pub batch_tokens: usize,
    /// The maximum number of inputs that are computed together; at least 1.
    pub batch_inputs: usize,
}

/// The tokens that one vector is computed from: those of one text, or of two that are read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingInput {
    /// All token ids.
    pub ids: Vec<u32>,
    /// Number of tokens of the first text: those after it have the second type, of models whose tokens have types.
    pub first_tokens: usize,
}

impl From<Vec<u32>> for EmbeddingInput {
    /// One text.
    fn from(ids: Vec<u32>) -> Self {
        EmbeddingInput {
            first_tokens: ids.len(),
            ids,
        }
    }
}

/// A model that turns token ids into vectors. One call runs at a time.
#[allow(async_fn_in_trait)]
pub trait EmbeddingModel {
    /// Its sizes.
    fn embedding_limits(&self) -> EmbeddingLimits;

    /// The vectors of `inputs` (at least one), pooled and normalized as the model's file says. No input
    /// is empty or longer than the context. The vector of an input does not depend, to the last bit, on the
    /// inputs beside it.
    ///
    /// The future may be dropped at any time: the next call starts afresh.
    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>>;
}
