//! What the engine tells of a running choice. Knows nothing of text or JSON.

use crate::Error;

/// One event of a choice. After `Finished` or `Failed` nothing follows.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A token was chosen; the one that ends the choice (a stop id) is reported too.
    Token {
        /// Its id.
        id: u32,
    },
    /// The choice ended.
    Finished {
        /// Why.
        reason: FinishReason,
    },
    /// The choice failed; others go on.
    Failed(Error),
}

/// Why a choice ended (API.md section 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// A stop id.
    Stop,
    /// `max_tokens` reached or the context is full.
    Length,
}
