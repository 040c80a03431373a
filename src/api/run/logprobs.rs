//! Log-probabilities in the legacy form (specification 7): how tokens are named, which are listed and
//! where their text begins.

use std::rc::Rc;

use crate::engine::generation::TokenScore;
use crate::text::{Place, Tokenizer};

/// The log-probability of impossible tokens: JSON has no infinity.
const LOWEST: f32 = -9999.0;

/// One token as the four arrays list it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct Entry {
    pub token: String,
    /// `None` for the first token of a prompt, which nothing predicts.
    pub logprob: Option<f32>,
    /// The best tokens and the token itself, best first, without duplicate names; `None` like
    /// `logprob`.
    pub top: Option<Vec<(String, f32)>>,
    /// Code points before it.
    pub text_offset: usize,
    pub id: u32,
    /// As many of the best ids as were asked for, with their values.
    pub best: Vec<(u32, f32)>,
}

/// How the tokens of a request are listed.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    tokenizer: Rc<Tokenizer>,
    tokens_as_ids: bool,
}

impl Listing {
    /// With `tokens_as_ids` tokens are named by their ids.
    pub(super) fn new(tokenizer: &Rc<Tokenizer>, tokens_as_ids: bool) -> Listing {
        Listing {
            tokenizer: tokenizer.clone(),
            tokens_as_ids,
        }
    }

    /// The token `id` at `place`. `score` holds as many best tokens as the request asks for; the first
    /// token of a prompt has none.
    pub(super) fn entry(&self, id: u32, place: Place, score: Option<&TokenScore>) -> Entry {
        let name = |id| self.name(id, place.drops_space);
        let top = score.map(|score| {
            let mut top: Vec<(String, f32)> = Vec::with_capacity(score.top.len() + 1);
            let is_listed = score.top.iter().any(|(best, _)| *best == id);
            let itself = (!is_listed).then_some((id, score.logprob));
            for (id, logprob) in score.top.iter().copied().chain(itself) {
                let name = name(id);
                // The best come first, so of duplicate names the larger value is already listed.
                if top.iter().all(|(known, _)| *known != name) {
                    top.push((name, finite(logprob)));
                }
            }
            top
        });
        Entry {
            token: name(id),
            logprob: score.map(|score| finite(score.logprob)),
            top,
            text_offset: place.start,
            id,
            best: score.map_or_else(Vec::new, |score| {
                let finite = |(id, logprob): &(u32, f32)| (*id, finite(*logprob));
                score.top.iter().map(finite).collect()
            }),
        }
    }

    fn name(&self, id: u32, drops_space: bool) -> String {
        if self.tokens_as_ids {
            return format!("token_id:{id}");
        }
        let label = self.tokenizer.token_label(id);
        match label.strip_prefix(' ') {
            Some(rest) if drops_space => rest.to_owned(),
            _ => label,
        }
    }
}

fn finite(logprob: f32) -> f32 {
    match logprob.is_finite() {
        true => logprob,
        false => LOWEST,
    }
}
