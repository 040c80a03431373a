//! The sampler chain of API.md section 5 on the CPU: the specification the GPU must reproduce.

/// How one token is chosen from logits; ranges as in API.md section 4.5, already validated.
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
