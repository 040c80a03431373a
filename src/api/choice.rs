//! One choice as text: the engine's events through the detokenizer and the stop matcher
//! (API.md section 6). Streaming and not streaming both read it, so they cannot differ.

use std::rc::Rc;

use futures_util::{FutureExt, StreamExt};

use super::request::Length;
use crate::engine::Events;
use crate::engine::event::{Event, FinishReason};
use crate::text::{Detokenizer, StopMatcher, Tokenizer};
use crate::{Error, Result};

/// Some settled text of a choice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    /// Set in the last piece.
    pub finish: Option<FinishReason>,
}

/// A running choice; dropping it cancels it.
pub(super) struct Choice {
    /// `None` once it has ended: what is still computed is not wanted.
    events: Option<Events>,
    /// An event that was looked at too early.
    next: Option<Event>,
    detokenizer: Detokenizer,
    matcher: StopMatcher,
    stop_ids: StopIds,
    /// Upper bound on generated tokens.
    max_tokens: usize,
    /// Generated so far, the one that ended it included.
    pub completion_tokens: usize,
}

/// The ids that end a choice, and whether their text is returned.
#[derive(Debug)]
pub(super) struct StopIds {
    end_of_text: Vec<u32>,
    /// Stop strings that are the text of one special token, which could never match while special
    /// tokens are hidden (section 6.3).
    special: Vec<u32>,
    tokenizer: Rc<Tokenizer>,
    include_stop: bool,
    skip_special_tokens: bool,
}

impl StopIds {
    pub(super) fn new(tokenizer: &Rc<Tokenizer>, length: &Length) -> StopIds {
        let special_id = |stop: &String| tokenizer.special_id(stop);
        StopIds {
            end_of_text: match length.ignore_eos {
                true => Vec::new(),
                false => tokenizer.eos_ids().to_vec(),
            },
            special: length.stop.iter().filter_map(special_id).collect(),
            tokenizer: tokenizer.clone(),
            include_stop: length.include_stop,
            skip_special_tokens: length.skip_special_tokens,
        }
    }

    /// All of them.
    pub(super) fn ids(&self) -> Vec<u32> {
        [self.end_of_text.as_slice(), &self.special].concat()
    }

    fn contains(&self, id: u32) -> bool {
        self.end_of_text.contains(&id) || self.special.contains(&id)
    }

    /// The text that the ending token itself leaves.
    fn text(&self, id: u32) -> String {
        let is_shown =
            self.include_stop && !(self.end_of_text.contains(&id) && self.skip_special_tokens);
        match is_shown {
            true => String::from_utf8_lossy(self.tokenizer.token_bytes(id)).into_owned(),
            false => String::new(),
        }
    }
}

impl Choice {
    /// Reads `events` (`None` if nothing is to be generated) of a choice that follows `prompt`.
    pub(super) fn new(
        events: Option<Events>,
        prompt: &[u32],
        stop_ids: StopIds,
        length: &Length,
        max_tokens: usize,
    ) -> Choice {
        let tokenizer = stop_ids.tokenizer.clone();
        Choice {
            events,
            next: None,
            detokenizer: Detokenizer::new(tokenizer, prompt, length.skip_special_tokens),
            matcher: StopMatcher::new(&length.stop, length.include_stop),
            stop_ids,
            max_tokens,
            completion_tokens: 0,
        }
    }

    /// The next text that is not empty, or the last piece; nothing follows the latter.
    pub(super) async fn next_piece(&mut self) -> Result<Piece> {
        if self.events.is_none() {
            return Ok(Piece {
                text: String::new(),
                finish: Some(FinishReason::Length),
            });
        }
        loop {
            let event = self.next_event().await;
            let mut piece = self.settle(event)?;
            if piece.finish.is_none() && piece.text.is_empty() {
                continue;
            }
            // The last text should come with the finish reason, so it is worth a look whether the
            // end is already there; waiting for it would delay the text.
            if piece.finish.is_none()
                && let Some(event) = self.next_event().now_or_never()
            {
                if self.ends_choice(&event) {
                    let last = self.settle(event)?;
                    piece.text.push_str(&last.text);
                    piece.finish = last.finish;
                } else {
                    self.next = Some(event);
                }
            }
            return Ok(piece);
        }
    }

    async fn next_event(&mut self) -> Event {
        if let Some(event) = self.next.take() {
            return event;
        }
        let event = match &mut self.events {
            Some(events) => events.next().await,
            None => None,
        };
        event.unwrap_or_else(|| Event::Failed(Error::Internal("the engine went away".to_owned())))
    }

    fn ends_choice(&self, event: &Event) -> bool {
        match event {
            Event::Token { id, .. } => self.stop_ids.contains(*id),
            Event::Finished { .. } => true,
            Event::Failed(_) | Event::Prompt { .. } => false,
        }
    }

    /// Takes one event. The order of its checks is that of section 6.1.
    fn settle(&mut self, event: Event) -> Result<Piece> {
        let id = match event {
            Event::Token { id, .. } => id,
            Event::Finished { reason } => return Ok(self.end(reason)),
            Event::Prompt { .. } => return Ok(Piece::default()),
            Event::Failed(error) => return Err(error),
        };
        self.completion_tokens += 1;
        if self.stop_ids.contains(id) {
            let mut piece = self.end(FinishReason::Stop);
            if self.matcher.matched().is_none() {
                piece.text.push_str(&self.stop_ids.text(id));
            }
            return Ok(piece);
        }
        let text = self.detokenizer.push(id);
        let outcome = self.matcher.push(&text);
        if outcome.matched.is_some() {
            self.events = None;
            return Ok(Piece {
                text: outcome.text,
                finish: Some(FinishReason::Stop),
            });
        }
        if self.completion_tokens < self.max_tokens {
            return Ok(Piece {
                text: outcome.text,
                finish: None,
            });
        }
        let mut piece = self.end(FinishReason::Length);
        piece.text.insert_str(0, &outcome.text);
        Ok(piece)
    }

    /// Releases what was held back. An unfinished character becomes U+FFFD, which may still
    /// complete a stop string.
    fn end(&mut self, reason: FinishReason) -> Piece {
        self.events = None;
        let outcome = self.matcher.push(&self.detokenizer.finish());
        Piece {
            text: outcome.text + &self.matcher.finish(),
            finish: Some(match outcome.matched {
                Some(_) => FinishReason::Stop,
                None => reason,
            }),
        }
    }
}
