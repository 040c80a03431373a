//! Lists the generated tokens of a candidate once their text is final: ids, log-probabilities and the raw output.

use std::collections::VecDeque;
use std::rc::Rc;

use super::logprobs::{Entry, missing_score};
use super::piece::{Piece, RawOutput};
use super::text_options::TextOptions;
use crate::Result;
use crate::engine::generation::TokenScore;
use crate::text::Place;

/// The tokens of a candidate.
pub(super) struct TokenList {
    options: Rc<TextOptions>,
    /// Code points before the completion.
    first_offset: usize,
    /// Tokens whose text is not final.
    unsettled: VecDeque<Unsettled>,
    /// All tokens of the completion, if the raw output is requested.
    raw_ids: Vec<u32>,
    raw_entries: Vec<Entry>,
}

/// A generated token. `start` and `end` are code points of the completion.
pub(super) struct Unsettled {
    pub id: u32,
    /// Whether log-probabilities list it: it does not end a message.
    pub is_listed: bool,
    pub start: usize,
    pub end: usize,
    pub score: Option<Box<TokenScore>>,
}

impl TokenList {
    /// An empty list. The completion begins after `first_offset` code points.
    pub(super) fn new(options: Rc<TextOptions>, first_offset: usize) -> TokenList {
        TokenList {
            options,
            first_offset,
            unsettled: VecDeque::new(),
            raw_ids: Vec::new(),
            raw_entries: Vec::new(),
        }
    }

    /// Adds the next token, if anything lists it.
    pub(super) fn push(&mut self, token: Unsettled) {
        let options = &self.options;
        if options.listing.is_some() || options.wants_ids || options.wants_raw {
            self.unsettled.push_back(token);
        }
    }

    /// Moves the tokens whose text is final to `piece`: those that end within the first `settled_chars` code points of the
    /// completion, or all once it is over.
    pub(super) fn settle(&mut self, settled_chars: usize, piece: &mut Piece) -> Result<()> {
        let is_over = piece.finish.is_some();
        let is_settled = |token: &mut Unsettled| is_over || token.end <= settled_chars;
        while let Some(token) = self.unsettled.pop_front_if(is_settled) {
            if self.options.wants_ids {
                piece.token_ids.push(token.id);
            }
            if self.options.wants_raw {
                self.raw_ids.push(token.id);
            }
            if let Some(listing) = self.options.listing.as_ref().filter(|_| token.is_listed) {
                let score = token.score.as_deref().ok_or_else(missing_score)?;
                // A token that a stop string removed begins at the end of the text.
                let start = self.first_offset + token.start.min(settled_chars);
                let place = Place {
                    start,
                    drops_space: false,
                };
                let entry = listing.entry(token.id, place, Some(score));
                if self.options.wants_raw {
                    self.raw_entries.push(entry.clone());
                }
                piece.entries.push(entry);
            }
        }
        Ok(())
    }

    /// Takes the raw output of a candidate that is over.
    pub(super) fn take_raw(&mut self, prompt_ids: &[u32]) -> RawOutput {
        let tokenizer = &self.options.tokenizer;
        let completion_ids = std::mem::take(&mut self.raw_ids);
        let entries = std::mem::take(&mut self.raw_entries);
        RawOutput {
            prompt: tokenizer.decode(prompt_ids, false),
            prompt_ids: prompt_ids.to_vec(),
            completion: tokenizer.decode(&completion_ids, false),
            completion_ids,
            entries: self.options.listing.as_ref().map(|_| entries),
        }
    }
}
