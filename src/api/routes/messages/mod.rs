//! `POST /messages`, Anthropic's form of a chat completion: parses the body, runs the plan and renders the message, whole or in
//! events. Every check is made before the first byte of the answer.
//!
//! `output.rs` makes blocks of the parts, and events of the blocks; a whole message is made by the same code without the
//! events. Blocks are numbered, so a continued stream needs what was delivered before: `Plan::repeats_delivered` makes the
//! second run return it once more as a marked piece, which changes the blocks and sends nothing.

pub(super) mod count_tokens;
mod object;
mod output;
mod parse;
mod request;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use futures_core::Stream;
use futures_util::stream;

use super::attempt::{Attempt, streamed, with_dropped_tokens};
use super::route::{Route, Upstream};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::error::{Failure, rename_param};
use crate::api::http::{self, Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::progress::Progress;
use crate::api::run::{Piece, Run, TokenCounts};
use crate::text::Tokenizer;
use object::{Event, MessageEnd, MessageObject, MessageUsage};
use output::Output;
use parse::Use;

pub(in crate::api) static ROUTE: Route = Route {
    path: "messages",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Any,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "a message in Anthropic's form: [Messages](#messages)",
    #[cfg(test)]
    fields: request::MessageFields::listed,
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<request::MessageFields>();
    visitor.visit::<MessageObject<'static>>();
    visitor.visit::<Event<'static>>();
    visitor.visit::<count_tokens::MessageTokenCount>();
}

/// The name that the run has for a field of this route.
const RENAMED: &[(&str, &str)] = &[("prompt", "messages")];

/// Answers the request, or continues the stream of an earlier run of it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let attempt = Attempt::read(endpoint, request)?;
    let now = attempt.local_time;
    let warn = |name: &str| endpoint.warn_unknown(name);
    let switches = &endpoint.switches;
    let (mut plan, is_stream) = parse::parse(&request.body, switches, now, Use::Answer, warn)?;
    plan.images.attach(&request.attachments)?;
    let run = Run::start(endpoint, plan, attempt.earlier()).await;
    let mut run = run.map_err(|error| rename_param(error, RENAMED))?;
    let id = attempt.id("msg_");
    let mut answering = Answering {
        output: Output::new(&id),
        id,
        model: run.model_id.clone(),
        tokenizer: run.tokenizer.clone(),
        has_begun: attempt.events_sent() > 0,
    };
    let dropped_tokens = run.dropped_tokens;
    let response = if is_stream {
        let progress = attempt.progress(&answering.id, &run);
        let events = events(run, answering, progress.clone());
        streamed(endpoint, events, progress)
    } else {
        let mut end = None;
        for piece in &run.choices().await? {
            let added = answering
                .output
                .add(piece, &answering.tokenizer, &mut |_| {});
            end = end.or(added);
        }
        let message = answering.object(end.unwrap_or_default(), run.counts());
        Response::json(200, to_json(&message))
    };
    Ok(with_dropped_tokens(response, dropped_tokens))
}

/// A message in the making.
struct Answering {
    id: String,
    /// Canonical model id.
    model: String,
    /// Names the special token that ended the message.
    tokenizer: Rc<Tokenizer>,
    output: Output,
    /// The event `message_start` was sent.
    has_begun: bool,
}

impl Answering {
    fn object(&self, end: MessageEnd, counts: TokenCounts) -> MessageObject<'_> {
        MessageObject {
            id: &self.id,
            kind: "message",
            role: "assistant",
            model: &self.model,
            content: &self.output.blocks,
            end,
            usage: MessageUsage::new(counts),
        }
    }

    /// The events of a piece. The first ones begin the message: the number of cached tokens is known by then.
    fn frames(&mut self, piece: &Piece, counts: TokenCounts) -> Vec<u8> {
        let mut frames = Vec::new();
        let mut send = |event: Event<'_>| frames.extend(event.frame());
        if !std::mem::replace(&mut self.has_begun, true) {
            let begun = TokenCounts {
                completion: 0,
                reasoning: 0,
                ..counts
            };
            send(Event::MessageStart {
                message: self.object(MessageEnd::default(), begun),
            });
        }
        let end = self.output.add(piece, &self.tokenizer, &mut send);
        if let Some(end) = end {
            send(Event::MessageDelta {
                delta: &end,
                usage: MessageUsage::new(counts),
            });
            send(Event::MessageStop);
        }
        frames
    }
}

/// The events of a streamed message. Those of a piece are sent together, so that a position is never between them.
fn events(run: Run, answering: Answering, progress: Rc<Progress>) -> impl Stream<Item = Vec<u8>> {
    struct State {
        /// `None` after the last event.
        run: Option<Box<Run>>,
        answering: Answering,
    }
    let state = State {
        run: Some(Box::new(run)),
        answering,
    };
    stream::unfold(state, move |mut state| {
        let progress = progress.clone();
        async move {
            let run = state.run.as_mut()?;
            loop {
                match run.next_piece().await {
                    // Its events were sent by the earlier run.
                    Ok(Some((_, piece))) if piece.was_delivered => {
                        let Answering {
                            output, tokenizer, ..
                        } = &mut state.answering;
                        output.add(&piece, tokenizer, &mut |_| {});
                    }
                    Ok(Some((_, piece))) => {
                        let frames = state.answering.frames(&piece, run.counts());
                        let delivered = run.delivered().to_vec();
                        progress.update(|position| {
                            position.candidates = delivered;
                            position.events_sent += 1;
                        });
                        return Some((frames, state));
                    }
                    Ok(None) => return None,
                    // Dropping the run cancels the generation.
                    Err(error) => {
                        progress.fail(&error);
                        state.run = None;
                        let body = Failure::from(&error).anthropic_body(None);
                        return Some((http::named_event("error", &body), state));
                    }
                }
            }
        }
    })
}
