//! Log-probabilities of a prompt's tokens (specification 7.6), which the routes that generate text share.

use serde::{Serialize, Serializer};

use crate::api::run::{PromptListing, RankedToken};

/// Tokens by their ids, the token of the prompt first.
#[derive(Debug)]
pub(super) struct ById<'a>(&'a [RankedToken]);

impl Serialize for ById<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let token = |token: &RankedToken| {
            let listed = PromptLogprob {
                logprob: token.logprob,
                rank: token.rank,
                decoded_token: token.text.clone(),
            };
            (token.id, listed)
        };
        serializer.collect_map(self.0.iter().map(token))
    }
}

/// A token that could be at a position of the prompt.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct PromptLogprob {
    logprob: f32,
    /// The rank from 1 on; null for a token that is not among the requested best ones.
    rank: Option<usize>,
    decoded_token: String,
}

/// The value of `prompt_logprobs` for a listed prompt.
pub(super) fn prompt_logprobs(prompt: &PromptListing) -> Option<Vec<Option<ById<'_>>>> {
    let scores = prompt.scores.as_ref()?.iter();
    Some(scores.map(|tokens| tokens.as_deref().map(ById)).collect())
}
