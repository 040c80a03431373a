//! The delivered part of an answer: a position from which a second run of the same request, on another
//! engine, continues the answer of the first. The transport keeps and sends it.
//!
//! The position has the random draws of a run (seeds, id, time) and the number of delivered tokens of each candidate. It
//! travels with every piece of a stream. The requester (`www/src/exchange/requester.ts`) keeps the request and the last position. When
//! the engine is lost, the next one runs the request again and leaves out what was delivered.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The progress of one answer, shared with the code that sends it.
#[derive(Debug, Default)]
pub struct Progress {
    position: RefCell<Option<Position>>,
    failure: RefCell<Option<Error>>,
}

/// The state that a second run of a request needs: the random choices of the first run, and how much of its answer
/// was delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::api) struct Position {
    /// The id of the answer.
    pub id: String,
    /// The time when the answer was created, in Unix seconds.
    pub created_s: u64,
    /// The seed of each prompt.
    pub seeds: Vec<i64>,
    /// The delivered part of each candidate.
    pub candidates: Vec<Delivered>,
    /// Whether the chunk with the token counts was delivered.
    pub usage_sent: bool,
    /// The number of events that were delivered, of a stream that numbers them.
    #[serde(default)]
    pub events_sent: usize,
}

/// The delivered part of a candidate. Tokens are counted, not bytes: how text is divided into chunks depends on
/// timing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::api) struct Delivered {
    /// Generated tokens whose text was delivered.
    pub tokens: usize,
    /// The number of these tokens that are reasoning.
    #[serde(default)]
    pub reasoning_tokens: usize,
    /// The number of these tokens that are in the prediction.
    #[serde(default)]
    pub predicted_tokens: usize,
    /// Digest of their ids. It shows when a second run chooses others.
    pub digest: Digest,
    pub is_finished: bool,
}

/// A hash of token ids in order (FNV-1a).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::api) struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds the next token.
    pub(in crate::api) fn add(&mut self, id: u32) {
        for byte in id.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl Delivered {
    /// Whether anything was delivered.
    pub(in crate::api) fn has_begun(self) -> bool {
        self.is_finished || self.tokens > 0
    }
}

impl Position {
    /// The position that [`Progress::position`] returned.
    ///
    /// # Errors
    /// [`Error::Internal`] if the text is not a position.
    pub(in crate::api) fn read(text: &str) -> Result<Position> {
        serde_json::from_str(text)
            .map_err(|error| Error::Internal(format!("not a position of an answer: {error}")))
    }
}

impl Progress {
    /// The position after what was taken from the body so far. `None` if the answer cannot be continued,
    /// so that it has to be given again as a whole. Opaque outside of this crate.
    pub fn position(&self) -> Option<String> {
        let position = self.position.borrow();
        // Numbers, strings and lists always have a JSON form.
        position
            .as_ref()
            .and_then(|it| serde_json::to_string(it).ok())
    }

    /// The failure that the answer reports, once the error has been taken from its body.
    pub fn failure(&self) -> Option<Error> {
        self.failure.borrow().clone()
    }

    pub(in crate::api) fn begin(&self, position: Position) {
        self.position.replace(Some(position));
    }

    pub(in crate::api) fn update(&self, change: impl FnOnce(&mut Position)) {
        if let Some(position) = &mut *self.position.borrow_mut() {
            change(position);
        }
    }

    pub(in crate::api) fn fail(&self, error: &Error) {
        self.failure.replace(Some(error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let progress = Progress::default();
        assert_eq!(progress.position(), None);
        let mut digest = Digest::default();
        digest.add(7);
        let position = Position {
            id: "cmpl-x".into(),
            created_s: 12,
            seeds: vec![i64::MIN, 7],
            candidates: vec![
                Delivered::default(),
                Delivered {
                    tokens: 1,
                    reasoning_tokens: 1,
                    predicted_tokens: 1,
                    digest,
                    is_finished: false,
                },
            ],
            usage_sent: false,
            events_sent: 3,
        };
        progress.begin(position.clone());
        let text = progress.position().unwrap();
        assert_eq!(Position::read(&text).unwrap(), position);
        assert!(Position::read("{}").is_err());
    }

    #[test]
    fn digests_depend_on_the_order() {
        let of = |ids: &[u32]| {
            let mut digest = Digest::default();
            ids.iter().for_each(|id| digest.add(*id));
            digest
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
    }
}
