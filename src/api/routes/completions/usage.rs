//! The token counts of answers to `POST /completions`.

use serde::Serialize;

use crate::api::run::TokenCounts;

/// Token counts of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Usage {
    prompt_tokens: usize,
    completion_tokens: usize,
    total_tokens: usize,
    /// The cached tokens of the prompt, if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    prompt_tokens_details: Option<PromptTokensDetails>,
    /// Details of the completion tokens, only with a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    completion_tokens_details: Option<CompletionTokensDetails>,
}

/// Details of the prompt tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct PromptTokensDetails {
    /// The tokens that were found in the prefix cache.
    cached_tokens: usize,
}

/// Details of the generated tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct CompletionTokensDetails {
    /// Tokens of the prediction that are in the completion.
    accepted_prediction_tokens: usize,
    /// Tokens of the prediction that are not in the completion.
    rejected_prediction_tokens: usize,
}

impl Usage {
    pub(super) fn new(counts: TokenCounts) -> Usage {
        let cached_tokens = counts.cached;
        Usage {
            prompt_tokens: counts.prompt,
            completion_tokens: counts.completion,
            total_tokens: counts.prompt + counts.completion,
            prompt_tokens_details: (cached_tokens > 0)
                .then_some(PromptTokensDetails { cached_tokens }),
            completion_tokens_details: counts.predicted.map(|it| CompletionTokensDetails {
                accepted_prediction_tokens: it.accepted,
                rejected_prediction_tokens: it.rejected,
            }),
        }
    }
}
