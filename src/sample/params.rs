//! How one token is chosen from logits. Ranges are API.md's section 4.5; validation is not here.

/// Parameters of the sampler chain, already validated.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// Below 1e-5 means greedy.
    pub temperature: f32,
    /// 1 is off.
    pub top_p: f32,
    /// `None` is off.
    pub top_k: Option<usize>,
    /// 0 is off.
    pub min_p: f32,
    /// Key of the counter-based generator.
    pub seed: i64,
    /// Candidate index within the prompt: the generator's second key.
    pub candidate: u32,
}

impl SamplingParams {
    /// Temperatures below this one mean greedy (API.md section 4.5).
    pub const GREEDY_BELOW: f32 = 1e-5;

    /// Whether the token is the argmax, with no randomness.
    pub fn is_greedy(&self) -> bool {
        // NaN, which validation keeps out, would be greedy too.
        self.temperature < Self::GREEDY_BELOW || self.temperature.is_nan()
    }
}
