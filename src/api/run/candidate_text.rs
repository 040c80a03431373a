//! The text of one candidate: the engine's events through the detokenizer and the stop matcher (specification
//! 6 and 7). Streamed and whole answers both read it, so they cannot differ.

use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, stream};

use super::logprobs::missing_score;
use super::message_text::MessageText;
use super::piece::{Finish, Piece, StopReason};
use super::prompt::FittedPrompt;
use super::text_options::TextOptions;
use super::token_list::{TokenList, Unsettled};
use crate::api::fields::Length;
use crate::api::progress::{Delivered, Digest};
use crate::engine::Follower;
use crate::engine::event::{Event, FinishReason};
use crate::engine::generation::TokenScore;
use crate::text::{Detokenizer, Place, StopMatcher};
use crate::{Error, Result};

/// A running candidate; dropping it cancels it.
pub(super) struct CandidateText {
    options: Rc<TextOptions>,
    prompt: Rc<FittedPrompt>,
    events: Pin<Box<dyn Stream<Item = Event>>>,
    /// An event that was read ahead.
    next: Option<Event>,
    detokenizer: Detokenizer,
    matcher: StopMatcher,
    /// Scores of the prompt's tokens from the second on. The first piece takes them.
    prompt_scores: Option<Rc<[TokenScore]>>,
    has_begun: bool,
    tokens: TokenList,
    /// Code points of the completion that are final.
    settled_chars: usize,
    /// The completion so far, if it may contain a tool call.
    completion: String,
    logprob_sum: f64,
    scored_tokens: usize,
    /// Tokens generated so far, including the one that ended the candidate.
    completion_tokens: usize,
    /// Follows them through the prediction.
    follower: Option<Follower>,
    /// Digest of their ids.
    digest: Digest,
    /// The progress of an earlier run, until it has been skipped.
    earlier: Option<Delivered>,
    /// Divides the text into parts, if it is a message.
    message: Option<MessageText>,
}

impl CandidateText {
    /// Reads the `events` of a candidate of `prompt`.
    pub(super) fn new(
        events: impl Stream<Item = Event> + 'static,
        prompt: Rc<FittedPrompt>,
        options: Rc<TextOptions>,
    ) -> CandidateText {
        let Length {
            stop,
            stop_regex,
            include_stop,
            skip_special_tokens,
            ..
        } = &options.length;
        let tokenizer = options.tokenizer.clone();
        let first_offset = match options.echo || options.offsets_count_prompt {
            true => prompt.text.chars().count(),
            false => 0,
        };
        CandidateText {
            detokenizer: Detokenizer::new(tokenizer, &prompt.ids, *skip_special_tokens),
            matcher: StopMatcher::new(stop, *include_stop).with_patterns(stop_regex),
            events: Box::pin(events),
            next: None,
            prompt_scores: None,
            has_begun: false,
            tokens: TokenList::new(options.clone(), first_offset),
            settled_chars: 0,
            message: options
                .message
                .as_ref()
                .map(|it| MessageText::new(it, &prompt.tail)),
            follower: options.prediction.clone().map(Follower::new),
            options,
            prompt,
            completion: String::new(),
            logprob_sum: 0.0,
            scored_tokens: 0,
            completion_tokens: 0,
            digest: Digest::default(),
            earlier: None,
        }
    }

    /// The same candidate without the pieces that an earlier run delivered.
    pub(super) fn after(self, delivered: Delivered) -> CandidateText {
        CandidateText {
            earlier: delivered.has_begun().then_some(delivered),
            ..self
        }
    }

    /// The pieces up to the last one or to an error. The candidate is dropped with the stream, which cancels
    /// everything that is still being computed.
    pub(super) fn pieces(self) -> impl Stream<Item = Result<Piece>> {
        stream::unfold(Some(self), |candidate| async {
            let mut candidate = candidate?;
            let piece = candidate.next_piece().await;
            let continues = matches!(&piece, Ok(piece) if piece.finish.is_none());
            Some((piece, continues.then_some(candidate)))
        })
    }

    /// The next piece that is not empty, or the last one. Nothing follows the last one.
    async fn next_piece(&mut self) -> Result<Piece> {
        if let Some(earlier) = self.earlier.take() {
            let mut delivered = self.leave_out(earlier).await?;
            if self.options.repeats_delivered {
                delivered.was_delivered = true;
                self.count(&mut delivered);
                return Ok(delivered);
            }
        }
        let mut piece = Piece::default();
        while piece.finish.is_none() {
            let event = self.next_event().await;
            self.settle(event, &mut piece)?;
            let shows_nothing = match self.message {
                Some(_) => piece.parts.is_empty(),
                None => piece.text.is_empty(),
            };
            if shows_nothing && piece.entries.is_empty() {
                continue;
            }
            // The last text should come with the finish reason. After the last token that may be
            // generated, the end follows at once, so wait for it. Otherwise, only check whether the end
            // is already available, because waiting would delay the text.
            if piece.finish.is_none() && self.completion_tokens < self.prompt.max_tokens {
                match self.next_event().now_or_never() {
                    Some(event) if self.is_end(&event) => self.settle(event, &mut piece)?,
                    event => {
                        self.next = event;
                        break;
                    }
                }
            }
        }
        if !self.has_begun {
            self.has_begun = true;
            self.begin(&mut piece)?;
        }
        if let Some(finish) = &mut piece.finish {
            piece.text.push_str(&self.options.suffix);
            let ids = &self.prompt.ids;
            let raw = self.options.wants_raw.then(|| self.tokens.take_raw(ids));
            finish.raw = raw.map(Box::new);
        }
        self.count(&mut piece);
        Ok(piece)
    }

    /// Sets the numbers of the piece that is delivered now.
    fn count(&self, piece: &mut Piece) {
        let message = self.message.as_ref();
        piece.completion_tokens = self.completion_tokens;
        piece.reasoning_tokens = message.map_or(0, MessageText::reasoning_tokens);
        piece.predicted_tokens = self.follower.as_ref().map_or(0, Follower::met);
        piece.digest = self.digest;
    }

    /// Processes the tokens that an earlier run delivered; returns what it delivered of them.
    async fn leave_out(&mut self, earlier: Delivered) -> Result<Piece> {
        let mut left_out = Piece::default();
        while self.completion_tokens < earlier.tokens && left_out.finish.is_none() {
            let event = self.next_event().await;
            self.settle(event, &mut left_out)?;
        }
        // Another GPU, or another form of the kernels, may round differently.
        if left_out.finish.is_some() || self.digest != earlier.digest {
            return Err(Error::Internal(
                "the engine was started again and now computes other tokens: the answer cannot be continued".into(),
            ));
        }
        self.has_begun = true;
        self.prompt_scores = None;
        Ok(left_out)
    }

    async fn next_event(&mut self) -> Event {
        if let Some(event) = self.next.take() {
            return event;
        }
        let event = self.events.next().await;
        event.unwrap_or_else(|| Event::Failed(Error::Internal("the engine was dropped".to_owned())))
    }

    fn is_end(&self, event: &Event) -> bool {
        match event {
            Event::Token { id, .. } => self.options.stop_ids.contains(*id),
            Event::Finished { .. } => true,
            Event::Failed(_) | Event::Prompt { .. } => false,
        }
    }

    /// Processes one event. Stops are checked in the order of specification 6.1; those of the engine
    /// come last.
    fn settle(&mut self, event: Event, piece: &mut Piece) -> Result<()> {
        match event {
            Event::Token { id, score } => self.take(id, score, piece),
            Event::Finished { reason } => self.end(reason, None, piece),
            Event::Prompt { scores } => self.prompt_scores = Some(scores),
            Event::Failed(error) => return Err(error),
        }
        piece
            .part_places
            .resize(piece.parts.len(), piece.entries.len());
        self.tokens.settle(self.settled_chars, piece)
    }

    fn take(&mut self, id: u32, score: Option<Box<TokenScore>>, piece: &mut Piece) {
        self.completion_tokens += 1;
        if let Some(follower) = &mut self.follower {
            follower.push(id);
        }
        self.digest.add(id);
        if let Some(score) = &score {
            self.logprob_sum += f64::from(score.raw_logprob);
            self.scored_tokens += 1;
        }
        let options = self.options.clone();
        let start;
        let ends = options.stop_ids.contains(id);
        if ends {
            let is_stop = !options.stop_ids.is_end_of_text(id);
            let stop_reason = is_stop.then_some(StopReason::Id(id));
            self.end(FinishReason::Stop, stop_reason, piece);
            // An incomplete character before it is flushed first.
            start = self.detokenizer.end();
            if self.matcher.matched().is_none() {
                piece.text.push_str(&options.stop_ids.text(id));
            }
            if let Some(message) = &mut self.message {
                message.count_token();
            }
        } else {
            start = self.detokenizer.start_of(id);
            let text = self.detokenizer.push(id);
            if let Some(message) = &mut self.message {
                message.count_token();
            }
            if self.completion_tokens <= options.length.min_tokens {
                // No stop string counts yet.
                self.release(&text, piece);
            } else {
                let outcome = self.matcher.push(&text);
                self.release(&outcome.text, piece);
                if outcome.matched.is_some() {
                    self.finish(FinishReason::Stop, None, piece);
                }
            }
        }
        self.tokens.push(Unsettled {
            id,
            is_listed: !ends || self.message.is_none(),
            start,
            end: self.detokenizer.end(),
            score,
        });
    }

    /// Releases the text that was held back. An incomplete character becomes U+FFFD, which may still
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
        if let Some(message) = &mut self.message {
            message.push(text, &mut piece.parts);
        } else if self.options.calls.is_some() {
            self.completion.push_str(text);
        }
    }

    /// Ends the candidate. A matched stop string takes precedence over any other reason.
    fn finish(&mut self, reason: FinishReason, stop_reason: Option<StopReason>, piece: &mut Piece) {
        if let Some(message) = &mut self.message {
            message.finish(&mut piece.parts);
        }
        let matched = self.matcher.matched();
        let Length {
            stop, stop_regex, ..
        } = &self.options.length;
        let stop = |index: usize| {
            StopReason::Text(match index.checked_sub(stop.len()) {
                None => stop[index].clone(),
                Some(index) => stop_regex[index].expression().to_owned(),
            })
        };
        let calls = self.options.calls.as_ref();
        piece.finish = Some(Finish {
            reason: match matched {
                Some(_) => FinishReason::Stop,
                None => reason,
            },
            stop_reason: matched.map(stop).or(stop_reason),
            has_calls: self.message.as_ref().is_some_and(MessageText::has_calls),
            tool_call: calls.and_then(|calls| calls.read(&self.completion)),
            mean_logprob: match self.scored_tokens {
                0 => None,
                tokens => Some(self.logprob_sum / tokens as f64),
            },
            raw: None,
        });
    }

    /// Puts the prompt before the first piece, if it is echoed or listed.
    fn begin(&mut self, piece: &mut Piece) -> Result<()> {
        if let Some(lister) = &self.options.prompt_listing {
            let scores = self.prompt_scores.as_deref();
            piece.prompt = Some(lister.list(&self.prompt.ids, scores)?);
        }
        if !self.options.echo {
            return Ok(());
        }
        let FittedPrompt {
            ids,
            text,
            places,
            echoed_from,
            ..
        } = &*self.prompt;
        piece.text.insert_str(0, text);
        if let Some(listing) = &self.options.listing {
            let scores = self.prompt_scores.take().unwrap_or_default();
            if scores.len() + 1 != ids.len() {
                return Err(missing_score());
            }
            // Nothing predicts the first token.
            let scores = [None].into_iter().chain(scores.iter().map(Some));
            let tokens = ids.iter().zip(scores).skip(*echoed_from).zip(places);
            let entry =
                |((id, score), place): ((&u32, _), &Place)| listing.entry(*id, *place, score);
            piece.entries.splice(0..0, tokens.map(entry));
        }
        Ok(())
    }
}
