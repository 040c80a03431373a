//! Several candidates at once: their pieces in the order in which they become ready.

use std::pin::Pin;

use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::{SelectAll, select_all};

use super::candidate_text::CandidateText;
use super::piece::Piece;
use crate::Result;

/// The pieces of one candidate, each with its index.
type Numbered = dyn Stream<Item = (usize, Result<Piece>)>;

/// Pieces, each with the index of its candidate; the pieces of one candidate keep their order. Dropping
/// it cancels all candidates.
pub(super) struct Pieces {
    candidates: SelectAll<Pin<Box<Numbered>>>,
}

impl Pieces {
    /// The pieces of these candidates, which come with their indices.
    pub(super) fn new(candidates: Vec<(usize, CandidateText)>) -> Pieces {
        let numbered = candidates.into_iter().map(|(index, candidate)| {
            let pieces = candidate.pieces().map(move |piece| (index, piece));
            Box::pin(pieces) as Pin<Box<Numbered>>
        });
        Pieces {
            candidates: select_all(numbered),
        }
    }

    /// The next piece of any candidate; `None` after the last one. After an error it must be dropped.
    pub(super) async fn next(&mut self) -> Result<Option<(usize, Piece)>> {
        match self.candidates.next().await {
            Some((index, piece)) => Ok(Some((index, piece?))),
            None => Ok(None),
        }
    }
}
