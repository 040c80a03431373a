//! `POST /responses`: parses the body, runs the plan and renders the response, whole or in events. Nothing is stored. Every
//! check is made before the first byte of the answer.
//!
//! A response is a chat completion that numbers its events. `output.rs` makes items of the parts, and events of the
//! items; a whole response is made by the same code without the events. The last events of an item repeat all of it, so
//! a continued stream needs what was delivered before: `Plan::repeats_delivered` makes the second run return it once
//! more as a marked piece, which changes the items and sends nothing. Ids of items are made of the response's id and
//! their index, and the number of events is part of the position, so both are the same after a continuation. Which
//! tokens a message's log-probabilities list follows from `Piece::part_places`, the order of tokens and parts, not from
//! how the text was divided.

pub(super) mod compact;
mod echo;
mod event;
pub(super) mod input_tokens;
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
use crate::api::endpoint::Endpoint;
use crate::api::error::{Failure, rename_param};
use crate::api::host::Host;
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::progress::Progress;
use crate::api::run::{Piece, Run, TokenCounts};
use crate::engine::event::FinishReason;
use crate::text::Tokenizer;
use crate::{Error, Result};
use echo::Echo;
use event::{Event, Frames};
use object::{
    CONSTANTS, IncompleteDetails, ResponseError, ResponseObject, ResponseUsage, Status,
    UsedSampling,
};
use output::Output;

pub(in crate::api) static ROUTE: Route = Route {
    path: "responses",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Any,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "a response, OpenAI's newer form of a message: [Responses](#responses)",
    #[cfg(test)]
    fields: request::ResponseFields::listed,
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    use crate::api::fields::input;
    visitor.visit::<request::ResponseFields>();
    visitor.visit::<request::ResponseTextFormat>();
    visitor.visit::<request::ResponseTool>();
    visitor.visit::<input::ResponseInputItem>();
    visitor.visit::<input::ResponseInputPart>();
    visitor.visit::<ResponseObject<'static>>();
    visitor.visit::<event::Numbered<'static>>();
    visitor.visit::<input_tokens::InputTokenCount>();
    visitor.visit::<compact::CompactFields>();
    visitor.visit::<compact::Compaction>();
}

/// The names that the run has for fields of this route.
const RENAMED: &[(&str, &str)] = &[
    ("prompt", "input"),
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
];

/// Answers the request, or continues the stream of an earlier run of it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let attempt = Attempt::read(endpoint, request)?;
    let now = attempt.local_time;
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let (mut plan, answer) = parse::parse(&request.body, &endpoint.switches, now, warn_unknown)?;
    plan.images.attach(&request.attachments)?;
    let run = Run::start(endpoint, plan, attempt.earlier()).await;
    let mut run = run.map_err(|error| rename_param(error, RENAMED))?;
    let id = attempt.id("resp_");
    let mut answering = Answering {
        output: Output::new(&id, answer.has_encrypted),
        id,
        created_s: attempt.created_s,
        model: run.model_id.clone(),
        system_fingerprint: run.system_fingerprint.clone(),
        tokenizer: run.tokenizer.clone(),
        sampling: UsedSampling::new(&run.sampling),
        echo: Echo {
            parallel_tool_calls: run.parallel_calls,
            ..answer.echo
        },
        host: Rc::clone(&endpoint.host),
    };
    let dropped_tokens = run.dropped_tokens;
    let response = if answer.stream {
        let progress = attempt.progress(&answering.id, &run);
        let frames = Frames::after(attempt.events_sent());
        let events = events(run, answering, frames, progress.clone());
        streamed(endpoint, events, progress)
    } else {
        let pieces = run.choices().await?;
        let end = answering.add(&pieces, &mut |_| {});
        Response::json(200, to_json(&answering.object(end, Some(run.counts()))))
    };
    Ok(with_dropped_tokens(response, dropped_tokens))
}

/// A response in the making.
struct Answering {
    id: String,
    created_s: u64,
    /// Canonical model id.
    model: String,
    system_fingerprint: String,
    /// Names the tokens of log-probabilities.
    tokenizer: Rc<Tokenizer>,
    sampling: UsedSampling,
    echo: Echo,
    output: Output,
    host: Rc<dyn Host>,
}

/// The progress of a response.
#[derive(Clone, Copy)]
enum End<'a> {
    Open,
    Finished(FinishReason),
    Failed(&'a Failure),
}

impl Answering {
    /// Adds pieces; says whether the last one of the response is among them.
    fn add(&mut self, pieces: &[Piece], emit: &mut dyn FnMut(Event<'_>)) -> End<'static> {
        let mut end = End::Open;
        for piece in pieces {
            self.output.add(piece, &self.tokenizer, emit);
            if let Some(finish) = &piece.finish {
                end = End::Finished(finish.reason);
            }
        }
        end
    }

    /// The response as it is now.
    fn object<'a>(&'a self, end: End<'a>, counts: Option<TokenCounts>) -> ResponseObject<'a> {
        let status = match end {
            End::Open => Status::InProgress,
            End::Finished(FinishReason::Stop) => Status::Completed,
            End::Finished(FinishReason::Length) => Status::Incomplete,
            End::Failed(_) => Status::Failed,
        };
        let now_s = || self.host.now_ms() / 1000;
        ResponseObject {
            id: &self.id,
            object: "response",
            created_at: self.created_s,
            completed_at: (status == Status::Completed).then(now_s),
            status,
            error: match end {
                End::Failed(failure) => Some(ResponseError {
                    code: failure.code,
                    message: &failure.message,
                }),
                End::Open | End::Finished(_) => None,
            },
            incomplete_details: (status == Status::Incomplete).then_some(IncompleteDetails {
                reason: "max_output_tokens",
            }),
            model: &self.model,
            system_fingerprint: &self.system_fingerprint,
            output: &self.output.items,
            usage: counts.map(ResponseUsage::new),
            sampling: self.sampling,
            echo: &self.echo,
            constants: CONSTANTS,
        }
    }

    fn begin(&self, frames: &mut Frames) {
        frames.push(Event::Created {
            response: self.object(End::Open, None),
        });
        frames.push(Event::InProgress {
            response: self.object(End::Open, None),
        });
    }

    /// The events of a piece; after the last one also that of the response, and the end of the stream.
    fn send(&mut self, piece: Piece, counts: TokenCounts, frames: &mut Frames) {
        let end = self.add(&[piece], &mut |event| frames.push(event));
        match end {
            End::Finished(FinishReason::Stop) => frames.push(Event::Completed {
                response: self.object(end, Some(counts)),
            }),
            End::Finished(FinishReason::Length) => frames.push(Event::Incomplete {
                response: self.object(end, Some(counts)),
            }),
            End::Open | End::Failed(_) => return,
        }
        frames.end();
    }

    fn fail(&mut self, error: &Error, counts: TokenCounts, frames: &mut Frames) {
        self.output.abandon();
        let failure = Failure::from(error);
        frames.push(Event::Error {
            code: failure.code,
            message: &failure.message,
            param: failure.param.as_deref(),
            error: failure.object(),
        });
        frames.push(Event::Failed {
            response: self.object(End::Failed(&failure), Some(counts)),
        });
        frames.end();
    }
}

/// The events of a streamed response. Those of a piece are sent together, and the last piece with the end of the response, so
/// that a position is never between them.
fn events(
    run: Run,
    answering: Answering,
    frames: Frames,
    progress: Rc<Progress>,
) -> impl Stream<Item = Vec<u8>> {
    struct State {
        /// `None` after the last event.
        run: Option<Box<Run>>,
        answering: Answering,
        frames: Frames,
    }
    let state = State {
        run: Some(Box::new(run)),
        answering,
        frames,
    };
    stream::unfold(state, move |mut state| {
        let progress = progress.clone();
        async move {
            let run = state.run.as_mut()?;
            if state.frames.events == 0 {
                state.answering.begin(&mut state.frames);
                progress.update(|position| position.events_sent = state.frames.events);
                return Some((state.frames.take(), state));
            }
            let bytes = loop {
                match run.next_piece().await {
                    // Its events were sent by the earlier run.
                    Ok(Some((_, piece))) if piece.was_delivered => {
                        state.answering.add(&[piece], &mut |_| {});
                    }
                    Ok(Some((_, piece))) => {
                        let counts = run.counts();
                        state.answering.send(piece, counts, &mut state.frames);
                        let delivered = run.delivered().to_vec();
                        let events_sent = state.frames.events;
                        progress.update(|position| {
                            position.candidates = delivered;
                            position.events_sent = events_sent;
                        });
                        break state.frames.take();
                    }
                    Ok(None) => return None,
                    // Dropping the run cancels the generation.
                    Err(error) => {
                        progress.fail(&error);
                        let counts = run.counts();
                        state.answering.fail(&error, counts, &mut state.frames);
                        state.run = None;
                        break state.frames.take();
                    }
                }
            };
            Some((bytes, state))
        }
    })
}
