//! Stage 8a: Mirostat 2.0 (specification 5.2). Keeps the surprise of the text near a target by
//! moving the limit on the surprise of single tokens.

use crate::sample::candidates::Candidates;

/// Mirostat 2.0 (specification 5.2).
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(
    feature = "test-hooks",
    derive(serde::Deserialize),
    serde(rename_all = "camelCase", deny_unknown_fields)
)]
pub struct MirostatParams {
    /// The target τ of the surprise, in bits.
    pub target_bits: f32,
    /// η: above 0, at most 1.
    pub learning_rate: f32,
}

/// The parameters and the limit.
#[derive(Debug)]
pub(super) struct Mirostat {
    params: MirostatParams,
    /// μ: the largest surprise that a token may have, in bits.
    pub(super) mu: f32,
}

impl Mirostat {
    /// `None` without parameters.
    pub(super) fn new(params: Option<MirostatParams>) -> Option<Self> {
        params.map(|params| Self {
            params,
            mu: 2.0 * params.target_bits,
        })
    }

    /// Keeps the candidates whose surprise is at most μ, or the first alone.
    pub(super) fn truncate(&self, candidates: &mut Candidates) {
        let total = candidates.total();
        let mut kept = 0;
        while kept < candidates.len() && surprise(candidates.weight(kept) / total) <= self.mu {
            kept += 1;
        }
        candidates.keep_first(kept);
    }

    /// Updates μ after a token was drawn whose probability before the truncation was `p`.
    pub(super) fn update(&mut self, p: f32) {
        self.mu -= self.params.learning_rate * (surprise(p) - self.params.target_bits);
    }
}

/// The surprise of an event of probability `p`, in bits.
fn surprise(p: f32) -> f32 {
    -p.log2()
}
