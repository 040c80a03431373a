//! How one token is chosen from logits. Ranges: specification 4.5; validation is not here.

/// Parameters of the sampler chain, already validated. [`Default`] is the endpoint's own: plain
/// sampling at temperature 1.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// Added to the logits of these ids (stage 1).
    pub logit_bias: Vec<(u32, f32)>,
    /// Divides positive and multiplies negative logits of ids in the prompt or generated (stage 2);
    /// 1 is off.
    pub repetition_penalty: f32,
    /// Subtracted per occurrence among the generated ids (stage 3); 0 is off.
    pub frequency_penalty: f32,
    /// Subtracted once from every generated id (stage 3); 0 is off.
    pub presence_penalty: f32,
    /// Stage 4; `None` is off.
    pub dry: Option<DryParams>,
    /// Below 1e-5 means greedy.
    pub temperature: f32,
    /// Replaces top_k, top_p and min_p (stage 8a); `None` is off.
    pub mirostat: Option<MirostatParams>,
    /// `None` is off.
    pub top_k: Option<usize>,
    /// 1 is off.
    pub top_p: f32,
    /// 0 is off.
    pub min_p: f32,
    /// Key of the counter-based generator.
    pub seed: i64,
}

/// DRY, "don't repeat yourself" (specification 5.1).
#[derive(Debug, Clone, PartialEq)]
pub struct DryParams {
    /// Above 0.
    pub multiplier: f32,
    /// At least 1.
    pub base: f32,
    /// Repetitions shorter than this are free.
    pub allowed_length: usize,
    /// Ids whose text contains a sequence breaker, ascending.
    pub breakers: std::rc::Rc<[u32]>,
}

/// Mirostat 2.0 (specification 5.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MirostatParams {
    /// The wanted surprise τ in bits.
    pub target_bits: f32,
    /// η: above 0, at most 1.
    pub learning_rate: f32,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            logit_bias: Vec::new(),
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            dry: None,
            temperature: 1.0,
            mirostat: None,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

impl SamplingParams {
    /// Temperatures below this one mean greedy (specification 4.5).
    pub const GREEDY_BELOW: f32 = 1e-5;

    /// Whether the token is the argmax, with no randomness.
    pub fn is_greedy(&self) -> bool {
        // NaN, which validation keeps out, would be greedy too.
        self.temperature < Self::GREEDY_BELOW || self.temperature.is_nan()
    }

    /// Whether the token is the argmax of the model's own logits: nothing changes them first.
    pub fn is_plain_greedy(&self) -> bool {
        self.is_greedy()
            && self.logit_bias.is_empty()
            && self.repetition_penalty == 1.0
            && self.frequency_penalty == 0.0
            && self.presence_penalty == 0.0
            && self.dry.is_none()
    }
}
