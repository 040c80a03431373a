//! One choice as text: the engine's events through the detokenizer and the stop matcher (specification
//! 6 and 7). Streaming and not streaming both read it, so they cannot differ.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, stream};

use super::constraint::CallReader;
use super::logprobs::{Entry, Listing};
use super::prompt::FittedPrompt;
use super::request::Length;
use super::stop_ids::StopIds;
use crate::engine::event::{Event, FinishReason};
use crate::engine::generation::TokenScore;
use crate::grammar::ToolCall;
use crate::text::{Detokenizer, Place, StopMatcher, Tokenizer};
use crate::{Error, Result};

/// Some settled text of a choice and the tokens it settles.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Piece {
    pub text: String,
    /// The tokens whose text is settled, if log-probabilities are wanted.
    pub entries: Vec<Entry>,
    /// The generated ones among them, if ids are wanted.
    pub token_ids: Vec<u32>,
    /// Tokens of the choice generated so far, not only those of this piece.
    pub completion_tokens: usize,
    /// Set in the last piece.
    pub finish: Option<Finish>,
}

/// How a choice ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finish {
    pub reason: FinishReason,
    pub stop_reason: Option<StopReason>,
    pub tool_call: Option<ToolCall>,
    /// Mean raw log-probability of its tokens; `None` without tokens or scores.
    pub mean_logprob: Option<f64>,
}

/// Which of the request's stops ended a choice.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub(super) enum StopReason {
    /// This string.
    Text(String),
    /// The token that this stop string is.
    Id(u32),
}

impl Piece {
    /// Appends the piece that follows.
    pub(super) fn append(&mut self, next: Piece) {
        self.text.push_str(&next.text);
        self.entries.extend(next.entries);
        self.token_ids.extend(next.token_ids);
        self.completion_tokens = next.completion_tokens;
        self.finish = next.finish;
    }
}

/// What the choices of a request have in common.
#[derive(Debug)]
pub(super) struct Form {
    pub tokenizer: Rc<Tokenizer>,
    pub length: Length,
    pub stop_ids: StopIds,
    /// Put the prompt before the text.
    pub echo: bool,
    /// Goes after the text.
    pub suffix: String,
    /// How tokens are listed, if they are.
    pub listing: Option<Listing>,
    /// Tell the ids of generated tokens.
    pub wants_ids: bool,
    /// Offsets count the prompt although it is not echoed.
    pub offsets_count_prompt: bool,
    pub calls: Option<CallReader>,
}

/// A running choice; dropping it cancels it.
pub(super) struct Choice {
    form: Rc<Form>,
    prompt: Rc<FittedPrompt>,
    events: Pin<Box<dyn Stream<Item = Event>>>,
    /// An event that was looked at too early.
    next: Option<Event>,
    detokenizer: Detokenizer,
    matcher: StopMatcher,
    /// Of the prompt's tokens from the second on; taken by the first piece.
    prompt_scores: Option<Rc<[TokenScore]>>,
    is_begun: bool,
    /// Tokens whose text is not settled.
    unsettled: VecDeque<Unsettled>,
    /// Code points of the completion that have left.
    settled_chars: usize,
    /// Code points before the completion's first.
    first_offset: usize,
    /// The completion so far, if a call may be in it.
    completion: String,
    logprob_sum: f64,
    scored_tokens: usize,
    /// Generated so far, the one that ended it included.
    completion_tokens: usize,
}

/// A token that was generated, in code points of the completion.
struct Unsettled {
    id: u32,
    start: usize,
    end: usize,
    score: Option<Box<TokenScore>>,
}

impl Choice {
    /// Reads `events` of a choice that follows `prompt`.
    pub(super) fn new(
        events: impl Stream<Item = Event> + 'static,
        prompt: Rc<FittedPrompt>,
        form: Rc<Form>,
    ) -> Choice {
        let Length {
            stop,
            include_stop,
            skip_special_tokens,
            ..
        } = &form.length;
        let tokenizer = form.tokenizer.clone();
        let first_offset = match form.echo || form.offsets_count_prompt {
            true => prompt.text.chars().count(),
            false => 0,
        };
        Choice {
            detokenizer: Detokenizer::new(tokenizer, &prompt.ids, *skip_special_tokens),
            matcher: StopMatcher::new(stop, *include_stop),
            form,
            prompt,
            events: Box::pin(events),
            next: None,
            prompt_scores: None,
            is_begun: false,
            unsettled: VecDeque::new(),
            settled_chars: 0,
            first_offset,
            completion: String::new(),
            logprob_sum: 0.0,
            scored_tokens: 0,
            completion_tokens: 0,
        }
    }

    /// The pieces up to the last one, or to an error. The choice is dropped with it: what is still
    /// computed is not wanted.
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Piece>> {
        stream::unfold(Some(self), |choice| async {
            let mut choice = choice?;
            let piece = choice.next_piece().await;
            let goes_on = matches!(&piece, Ok(piece) if piece.finish.is_none());
            Some((piece, goes_on.then_some(choice)))
        })
    }

    /// The next piece that has something to tell, or the last one; nothing follows the latter.
    async fn next_piece(&mut self) -> Result<Piece> {
        let mut piece = Piece::default();
        while piece.finish.is_none() {
            let event = self.next_event().await;
            self.settle(event, &mut piece)?;
            if piece.text.is_empty() && piece.entries.is_empty() {
                continue;
            }
            // The last text should come with the finish reason. After the last token that may be
            // generated the end is due; else it is worth a look whether it is already there, but
            // waiting for it would delay the text.
            if piece.finish.is_none() && self.completion_tokens < self.prompt.max_tokens {
                match self.next_event().now_or_never() {
                    Some(event) if self.ends_choice(&event) => self.settle(event, &mut piece)?,
                    event => {
                        self.next = event;
                        break;
                    }
                }
            }
        }
        if !self.is_begun {
            self.is_begun = true;
            self.begin(&mut piece)?;
        }
        if piece.finish.is_some() {
            piece.text.push_str(&self.form.suffix);
        }
        piece.completion_tokens = self.completion_tokens;
        Ok(piece)
    }

    async fn next_event(&mut self) -> Event {
        if let Some(event) = self.next.take() {
            return event;
        }
        let event = self.events.next().await;
        event.unwrap_or_else(|| Event::Failed(Error::Internal("the engine went away".to_owned())))
    }

    fn ends_choice(&self, event: &Event) -> bool {
        match event {
            Event::Token { id, .. } => self.form.stop_ids.contains(*id),
            Event::Finished { .. } => true,
            Event::Failed(_) | Event::Prompt { .. } => false,
        }
    }

    /// Takes one event. The order of its checks is that of specification 6.1; the engine's come last.
    fn settle(&mut self, event: Event, piece: &mut Piece) -> Result<()> {
        match event {
            Event::Token { id, score } => self.take(id, score, piece),
            Event::Finished { reason } => self.end(reason, None, piece),
            Event::Prompt { scores } => self.prompt_scores = Some(scores),
            Event::Failed(error) => return Err(error),
        }
        self.list(piece)
    }

    fn take(&mut self, id: u32, score: Option<Box<TokenScore>>, piece: &mut Piece) {
        self.completion_tokens += 1;
        if let Some(score) = &score {
            self.logprob_sum += f64::from(score.raw_logprob);
            self.scored_tokens += 1;
        }
        let form = self.form.clone();
        let start;
        if form.stop_ids.contains(id) {
            let is_stop = !form.stop_ids.is_end_of_text(id);
            let stop_reason = is_stop.then_some(StopReason::Id(id));
            self.end(FinishReason::Stop, stop_reason, piece);
            // What is left of a character that it cut off stands before it.
            start = self.detokenizer.end();
            if self.matcher.matched().is_none() {
                piece.text.push_str(&form.stop_ids.text(id));
            }
        } else {
            start = self.detokenizer.start_of(id);
            let text = self.detokenizer.push(id);
            let outcome = self.matcher.push(&text);
            self.release(&outcome.text, piece);
            if outcome.matched.is_some() {
                self.finish(FinishReason::Stop, None, piece);
            }
        }
        if form.listing.is_some() || form.wants_ids {
            self.unsettled.push_back(Unsettled {
                id,
                start,
                end: self.detokenizer.end(),
                score,
            });
        }
    }

    /// Releases what was held back. An unfinished character becomes U+FFFD, which may still
    /// complete a stop string.
    fn end(&mut self, reason: FinishReason, stop_reason: Option<StopReason>, piece: &mut Piece) {
        let rest = self.detokenizer.finish();
        let outcome = self.matcher.push(&rest);
        self.release(&outcome.text, piece);
        let held_back = self.matcher.finish();
        self.release(&held_back, piece);
        self.finish(reason, stop_reason, piece);
    }

    fn release(&mut self, text: &str, piece: &mut Piece) {
        piece.text.push_str(text);
        self.settled_chars += text.chars().count();
        if self.form.calls.is_some() {
            self.completion.push_str(text);
        }
    }

    /// Closes the choice; a stop string that was matched is the reason before any other.
    fn finish(&mut self, reason: FinishReason, stop_reason: Option<StopReason>, piece: &mut Piece) {
        let matched = self.matcher.matched();
        let stop = |index: usize| StopReason::Text(self.form.length.stop[index].clone());
        let calls = self.form.calls.as_ref();
        piece.finish = Some(Finish {
            reason: match matched {
                Some(_) => FinishReason::Stop,
                None => reason,
            },
            stop_reason: matched.map(stop).or(stop_reason),
            tool_call: calls.and_then(|calls| calls.read(&self.completion)),
            mean_logprob: match self.scored_tokens {
                0 => None,
                tokens => Some(self.logprob_sum / tokens as f64),
            },
        });
    }

    /// Moves the tokens whose text is settled to `piece`.
    fn list(&mut self, piece: &mut Piece) -> Result<()> {
        let is_over = piece.finish.is_some();
        let is_settled = |token: &mut Unsettled| is_over || token.end <= self.settled_chars;
        while let Some(token) = self.unsettled.pop_front_if(is_settled) {
            if self.form.wants_ids {
                piece.token_ids.push(token.id);
            }
            if let Some(listing) = &self.form.listing {
                let score = token.score.as_deref().ok_or_else(missing_score)?;
                // What a stop swallowed begins at the end.
                let start = self.first_offset + token.start.min(self.settled_chars);
                let place = Place {
                    start,
                    drops_space: false,
                };
                piece
                    .entries
                    .push(listing.entry(token.id, place, Some(score)));
            }
        }
        Ok(())
    }

    /// Puts the prompt before the first piece, if it is to be echoed.
    fn begin(&mut self, piece: &mut Piece) -> Result<()> {
        if !self.form.echo {
            return Ok(());
        }
        let FittedPrompt {
            ids, text, places, ..
        } = &*self.prompt;
        piece.text.insert_str(0, text);
        if let Some(listing) = &self.form.listing {
            let scores = self.prompt_scores.take().unwrap_or_default();
            if scores.len() + 1 != ids.len() {
                return Err(missing_score());
            }
            // Nothing predicts the first.
            let scores = [None].into_iter().chain(scores.iter().map(Some));
            let tokens = ids.iter().zip(places).zip(scores);
            let entry =
                |((id, place), score): ((&u32, &Place), _)| listing.entry(*id, *place, score);
            piece.entries.splice(0..0, tokens.map(entry));
        }
        Ok(())
    }
}

fn missing_score() -> Error {
    Error::Internal("the engine left out a score".to_owned())
}
