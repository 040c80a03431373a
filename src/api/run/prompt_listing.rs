//! The list of a prompt in an answer, apart from an echo (specification 7.6): token ids, and log-probabilities by id.

use std::rc::Rc;

use super::logprobs::{finite, missing_score};
use crate::Result;
use crate::engine::generation::TokenScore;
use crate::text::Tokenizer;

/// The listed parts of a prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct PromptListing {
    pub ids: Option<Vec<u32>>,
    /// Each token and the best ones in its place; the first has none, because nothing predicts it.
    pub scores: Option<Vec<Option<Vec<RankedToken>>>>,
}

/// A token that could be at a position of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct RankedToken {
    pub id: u32,
    pub logprob: f32,
    /// The rank, from 1 on; unknown for a token that is not among the best that were requested.
    pub rank: Option<usize>,
    pub text: String,
}

/// Lists prompts as the request asks for it.
#[derive(Debug)]
pub(super) struct PromptLister {
    pub tokenizer: Rc<Tokenizer>,
    pub wants_ids: bool,
    /// Best tokens per token.
    pub top: Option<usize>,
}

impl PromptLister {
    /// Lists the prompt `ids`, whose scores from the second token on are `scores`.
    pub(super) fn list(&self, ids: &[u32], scores: Option<&[TokenScore]>) -> Result<PromptListing> {
        let listed = |top: usize| {
            let scores = scores.unwrap_or_default();
            if scores.len() + 1 != ids.len() {
                return Err(missing_score());
            }
            let listed = scores.iter().map(|score| Some(self.ranked(score, top)));
            Ok([None].into_iter().chain(listed).collect())
        };
        Ok(PromptListing {
            ids: self.wants_ids.then(|| ids.to_vec()),
            scores: self.top.map(listed).transpose()?,
        })
    }

    /// The token of the prompt, and the `top` best without it.
    fn ranked(&self, score: &TokenScore, top: usize) -> Vec<RankedToken> {
        let best = score.top.iter().take(top).zip(1..);
        let token = |id: u32, logprob: f32, rank| RankedToken {
            id,
            logprob: finite(logprob),
            rank,
            text: self.tokenizer.token_label(id),
        };
        let rank = score.top.iter().position(|(id, _)| *id == score.id);
        let itself = token(score.id, score.logprob, rank.map(|rank| rank + 1));
        let others = best
            .filter(|((id, _), _)| *id != score.id)
            .map(|((id, logprob), rank)| token(*id, *logprob, Some(rank)));
        [itself].into_iter().chain(others).collect()
    }
}
