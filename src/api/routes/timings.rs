//! `timings` of an answer (specification 10.6), in llama.cpp's form.

use serde::Serialize;

use crate::api::run::PerfMetrics;

/// The time that the prompt and the completion took, waiting included, with the switch `timings`.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Timings {
    /// Tokens of the prompt that were cached.
    cache_n: usize,
    /// Prompt tokens that were not cached.
    prompt_n: usize,
    /// The time until the first token.
    prompt_ms: f64,
    prompt_per_token_ms: f64,
    prompt_per_second: f64,
    /// Generated tokens.
    predicted_n: usize,
    /// The time from the first token on.
    predicted_ms: f64,
    predicted_per_token_ms: f64,
    predicted_per_second: f64,
}

impl Timings {
    pub(super) fn new(metrics: PerfMetrics) -> Timings {
        let PerfMetrics {
            counts,
            first_token_ms,
            total_ms,
        } = metrics;
        let prompt_n = counts.prompt.saturating_sub(counts.cached);
        let prompt_ms = first_token_ms as f64;
        let predicted_n = counts.completion;
        let predicted_ms = total_ms.saturating_sub(first_token_ms) as f64;
        Timings {
            cache_n: counts.cached,
            prompt_n,
            prompt_ms,
            prompt_per_token_ms: ratio(prompt_ms, prompt_n as f64),
            prompt_per_second: ratio(prompt_n as f64, prompt_ms / 1000.0),
            predicted_n,
            predicted_ms,
            predicted_per_token_ms: ratio(predicted_ms, predicted_n as f64),
            predicted_per_second: ratio(predicted_n as f64, predicted_ms / 1000.0),
        }
    }
}

/// 0 where there is nothing to divide by: JSON has no infinity.
fn ratio(of: f64, by: f64) -> f64 {
    if by > 0.0 { of / by } else { 0.0 }
}
