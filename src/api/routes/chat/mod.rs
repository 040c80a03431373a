//! `POST /chat/completions`: parses the body, runs the plan and renders the answer, whole or in chunks. Every check is
//! made before the first byte of the answer.

mod message;
mod parse;
mod render;
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
use crate::api::fields::{Streaming, functions};
use crate::api::http::{self, Request, Response};
use crate::api::models::Purpose;
use crate::api::progress::Progress;
use crate::api::routes::timings::Timings;
use crate::api::run::Run;
use parse::Delivery;
use render::{Chunk, Head};

pub(in crate::api) static ROUTE: Route = Route {
    path: "chat/completions",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Any,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "a message that answers a conversation: [Chat](#chat)",
    #[cfg(test)]
    fields: parse::ChatCompletionFields::listed,
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    use crate::api::fields::conversation;
    visitor.visit::<parse::ChatCompletionFields>();
    visitor.visit::<conversation::ChatMessage>();
    visitor.visit::<conversation::ChatMessageCall>();
    visitor.visit::<conversation::ChatContentPart>();
    visitor.visit::<render::ChatCompletion<'static>>();
    visitor.visit::<render::ChatCompletionChunk<'static>>();
}

/// Answers the request, or continues the stream of an earlier run of it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let attempt = Attempt::read(endpoint, request)?;
    let now = attempt.local_time;
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let (mut plan, delivery) = parse::parse(&request.body, &endpoint.switches, now, warn_unknown)?;
    plan.images.attach(&request.attachments)?;
    let Delivery {
        streaming,
        echo,
        includes_reasoning,
        has_functions,
    } = delivery;
    let logprobs = plan.logprobs;
    let has_timings = endpoint.switches.timings;
    let run = Run::start(endpoint, plan, attempt.earlier()).await;
    // A fault of the prompt is one of the messages.
    let run = run.map_err(|error| rename_param(error, &[("prompt", "messages")]));
    let mut run = match has_functions {
        true => run.map_err(functions::rename)?,
        false => run?,
    };
    let head = Head {
        id: attempt.id("chatcmpl-"),
        created_s: attempt.created_s,
        model: run.model_id.clone(),
        system_fingerprint: run.system_fingerprint.clone(),
        has_logprobs: logprobs.top.is_some(),
        tokens_as_ids: logprobs.tokens_as_ids,
        has_token_ids: logprobs.tokens_as_ids || logprobs.token_ids,
        has_functions,
        includes_reasoning,
        echo,
        tokenizer: run.tokenizer.clone(),
    };
    let dropped_tokens = run.dropped_tokens;
    let response = if streaming.stream {
        let progress = attempt.progress(&head.id, &run);
        let streaming = attempt.remaining(streaming);
        let chunks = chunks(run, head, streaming, has_timings, progress.clone());
        streamed(endpoint, chunks, progress)
    } else {
        let choices = run.choices().await?;
        let timings = has_timings.then(|| Timings::new(run.perf_metrics()));
        Response::json(200, render::whole(&head, &choices, run.counts(), timings))
    };
    Ok(with_dropped_tokens(response, dropped_tokens))
}

/// The events of a streaming answer, the last one being `[DONE]`. The first event of a choice comes with the role, the
/// last one with the reason of its end; both are sent together with their neighbors, so that a position is never between
/// them.
fn chunks(
    run: Run,
    head: Head,
    streaming: Streaming,
    has_timings: bool,
    progress: Rc<Progress>,
) -> impl Stream<Item = Vec<u8>> {
    enum Phase {
        Pieces(Box<Run>),
        Done,
        Closed,
    }
    struct State {
        phase: Phase,
        /// Whether each choice has its role.
        begun: Vec<bool>,
    }
    let begun = run.delivered().iter().map(|it| it.has_begun()).collect();
    let state = State {
        phase: Phase::Pieces(Box::new(run)),
        begun,
    };
    let head = Rc::new(head);
    stream::unfold(state, move |mut state| {
        let (head, progress) = (head.clone(), progress.clone());
        async move {
            let mut run = match state.phase {
                Phase::Pieces(run) => run,
                Phase::Done => {
                    state.phase = Phase::Closed;
                    return Some((http::DONE.to_vec(), state));
                }
                Phase::Closed => return None,
            };
            let (bytes, next) = match run.next_piece().await {
                Ok(Some((index, piece))) => {
                    let delivered = run.delivered()[index];
                    progress.update(|position| position.candidates[index] = delivered);
                    let running = streaming.continuous_usage;
                    let chunk = Chunk {
                        index,
                        piece: &piece,
                        is_first: !std::mem::replace(&mut state.begun[index], true),
                        counts: running.then(|| run.candidate_counts(index)),
                        timings: (has_timings && run.is_over())
                            .then(|| Timings::new(run.perf_metrics())),
                    };
                    let events = render::chunks(&head, &chunk, streaming.include_usage);
                    let events = events.iter().flat_map(|json| http::event(json));
                    (events.collect(), Phase::Pieces(run))
                }
                Ok(None) if streaming.include_usage => {
                    progress.update(|position| position.usage_sent = true);
                    let json = render::usage_chunk(&head, run.counts());
                    (http::event(&json), Phase::Done)
                }
                Ok(None) => (http::DONE.to_vec(), Phase::Closed),
                // Dropping the run cancels the generation.
                Err(error) => {
                    progress.fail(&error);
                    (http::event(&Failure::from(&error).body()), Phase::Done)
                }
            };
            state.phase = next;
            Some((bytes, state))
        }
    })
}
