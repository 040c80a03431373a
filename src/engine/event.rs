//! The events of a candidate.

use std::rc::Rc;

use crate::Error;
use crate::sample::TokenScore;

/// One event of a candidate. After `Finished` or `Failed` nothing follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The prompt's scores, which come first and only if requested: one per prompt token from the second
    /// on. Every candidate of the prompt gets the same scores.
    Prompt {
        /// `scores[i]` is of `prompt[i + 1]`.
        scores: Rc<[TokenScore]>,
    },
    /// A token was chosen. A token that ends the candidate (a stop id) is reported too.
    Token {
        /// Its id.
        id: u32,
        /// Its score, if requested.
        score: Option<Box<TokenScore>>,
    },
    /// The candidate ended.
    Finished {
        /// The reason why it ended.
        reason: FinishReason,
    },
    /// The candidate failed; others continue.
    Failed(Error),
}

/// The reason why a candidate ended (specification 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// A stop id, or a constraint after which nothing may follow.
    Stop,
    /// `max_tokens` reached or the context is full.
    Length,
}
