//! Log-probabilities in the legacy form (specification 7): how tokens are named, which are listed and
//! where their text begins.

use std::rc::Rc;

use crate::Error;
use crate::engine::generation::TokenScore;
use crate::text::{Place, Tokenizer};

/// The log-probability of impossible tokens: JSON has no infinity.
const LOWEST: f32 = -9999.0;

/// One token as the four arrays list it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct Entry {
    pub token: String,
    /// The bytes of its text.
    pub bytes: Vec<u8>,
    /// `None` for the first token of a prompt, which nothing predicts.
    pub logprob: Option<f32>,
    /// The best tokens and the token itself, best first, without duplicate names; `None` like
    /// `logprob`.
    pub top: Option<Vec<TopEntry>>,
    /// Code points before it.
    pub text_offset: usize,
    pub id: u32,
    /// The best ids with their values, as many as were asked for.
    pub best: Vec<(u32, f32)>,
}

/// One of the best tokens at a position.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct TopEntry {
    pub token: String,
    /// The bytes of its text.
    pub bytes: Vec<u8>,
    pub logprob: f32,
}

/// The options for listing the tokens of a request.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    tokenizer: Rc<Tokenizer>,
    tokens_as_ids: bool,
    /// The number of best tokens that are listed; a score may hold more.
    top: usize,
}

impl Listing {
    /// A listing of the `top` most likely tokens. With `tokens_as_ids` tokens are named by their ids.
    pub(super) fn new(tokenizer: &Rc<Tokenizer>, tokens_as_ids: bool, top: usize) -> Listing {
        Listing {
            tokenizer: tokenizer.clone(),
            tokens_as_ids,
            top,
        }
    }

    /// The token `id` at `place`. `score` holds as many best tokens as the request asks for; the first
    /// token of a prompt has none.
    pub(super) fn entry(&self, id: u32, place: Place, score: Option<&TokenScore>) -> Entry {
        let name = |id| self.name(id, place.drops_space);
        let top = score.map(|score| {
            let best = &score.top[..score.top.len().min(self.top)];
            let mut top: Vec<TopEntry> = Vec::with_capacity(best.len() + 1);
            let is_listed = best.iter().any(|(best, _)| *best == id);
            let itself = (!is_listed).then_some((id, score.logprob));
            for (id, logprob) in best.iter().copied().chain(itself) {
                let name = name(id);
                // The best come first, so of duplicate names the larger value is already listed.
                if top.iter().all(|known| known.token != name) {
                    top.push(TopEntry {
                        token: name,
                        bytes: self.bytes(id, place.drops_space),
                        logprob: finite(logprob),
                    });
                }
            }
            top
        });
        Entry {
            token: name(id),
            bytes: self.bytes(id, place.drops_space),
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

    fn bytes(&self, id: u32, drops_space: bool) -> Vec<u8> {
        let bytes = self.tokenizer.token_bytes(id);
        match bytes {
            [b' ', rest @ ..] if drops_space => rest.to_vec(),
            _ => bytes.to_vec(),
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

pub(super) fn finite(logprob: f32) -> f32 {
    match logprob.is_finite() {
        true => logprob,
        false => LOWEST,
    }
}

/// The engine sent fewer scores than were requested.
pub(super) fn missing_score() -> Error {
    Error::Internal("the engine left out a score".to_owned())
}
