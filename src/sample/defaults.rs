//! Values that a model's publisher recommends for generating.

/// Values for sampling fields; `None` keeps the endpoint's default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingDefaults {
    /// The temperature, 0 to 2.
    pub temperature: Option<f32>,
    /// The share of the probability that is kept, 0 to 1.
    pub top_p: Option<f32>,
    /// Number of tokens that are kept; −1 and 0 keep all.
    pub top_k: Option<i64>,
    /// The share of the largest probability that a token needs, 0 to 1.
    pub min_p: Option<f32>,
    /// The factor is above 0 and at most 2.
    pub repetition_penalty: Option<f32>,
    /// The maximum number of tokens of a message; at least 1.
    pub max_tokens: Option<usize>,
}
