//! Log-probabilities of a message's tokens (specification 18.7), which the routes that answer with messages share.

use serde::Serialize;

use crate::api::run::Entry;
use crate::text::Tokenizer;

/// A token and the most likely ones in its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ChatTokenLogprob {
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    token: ChatToken,
    /// The most likely tokens, as many as requested, best first.
    top_logprobs: Vec<ChatToken>,
}

/// A token and its log-probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatToken {
    token: String,
    logprob: f32,
    /// UTF-8, which may be a part of a character.
    bytes: Vec<u8>,
}

/// The list of generated tokens in an answer. With `tokens_as_ids` they are named by their ids.
pub(super) fn token_logprobs(
    tokenizer: &Tokenizer,
    entries: &[Entry],
    tokens_as_ids: bool,
) -> Vec<ChatTokenLogprob> {
    let token = |id: u32, logprob: f32| ChatToken {
        token: match tokens_as_ids {
            true => format!("token_id:{id}"),
            false => tokenizer.token_label(id),
        },
        logprob,
        bytes: tokenizer.token_bytes(id).to_vec(),
    };
    let entry = |entry: &Entry| ChatTokenLogprob {
        token: token(entry.id, entry.logprob.unwrap_or_default()),
        top_logprobs: entry.best.iter().map(|(id, it)| token(*id, *it)).collect(),
    };
    entries.iter().map(entry).collect()
}
