//! Several choices at once: their pieces in the order in which they become ready. Knows nothing of
//! what a piece says.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};

use super::choice::{Choice, Piece};
use crate::Result;

/// The pieces of one choice, each with its index.
type Numbered = dyn Stream<Item = (usize, Result<Piece>)>;

/// Pieces, each with the index of its choice; the pieces of one choice keep their order. Dropping
/// it cancels all choices.
pub(super) struct Pieces {
    choices: SelectAll<Pin<Box<Numbered>>>,
}

impl Pieces {
    pub(super) fn new(choices: Vec<Choice>) -> Pieces {
        let numbered = choices.into_iter().enumerate().map(|(index, choice)| {
            let pieces = choice.pieces().map(move |piece| (index, piece));
            Box::pin(pieces) as Pin<Box<Numbered>>
        });
        Pieces {
            choices: select_all(numbered),
        }
    }

    /// The next piece of any choice; `None` once all have ended. After an error the others are to
    /// be dropped.
    pub(super) async fn next(&mut self) -> Result<Option<(usize, Piece)>> {
        match self.choices.next().await {
            Some((index, piece)) => Ok(Some((index, piece?))),
            None => Ok(None),
        }
    }
}
