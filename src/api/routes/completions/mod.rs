//! `POST /completions`: parses the body, runs the plan and renders the answer, whole or in chunks. Every
//! check is made before the first byte of the answer.

mod logprobs;
mod parse;
mod render;
#[cfg(test)]
mod tests;
mod usage;

use std::rc::Rc;

use futures_core::Stream;
use futures_util::stream;

use super::attempt::{Attempt, streamed, with_dropped_tokens};
use super::route::{Route, Upstream};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::error::Failure;
use crate::api::fields::Streaming;
use crate::api::http::{self, Request, Response};
use crate::api::models::Purpose;
use crate::api::progress::Progress;
use crate::api::run::Run;
use render::{Chunk, Head, Members};

pub(in crate::api) static ROUTE: Route = Route {
    path: "completions",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Any,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "a completion",
    #[cfg(test)]
    fields: parse::CompletionFields::listed,
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<parse::CompletionFields>();
    visitor.visit::<render::Completion<'static>>();
    visitor.visit::<render::ToolCall<'static>>();
    visitor.visit::<super::prompt_listing::PromptLogprob>();
}

/// Answers the request, or continues the stream of an earlier run of it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let (mut plan, streaming) = parse::parse(&request.body, &endpoint.switches, warn_unknown)?;
    plan.images.attach(&request.attachments)?;
    let attempt = Attempt::read(endpoint, request)?;
    let members = Members {
        logprobs: plan.logprobs.top.map(|_| plan.logprobs.shape),
        token_ids: plan.logprobs.tokens_as_ids || plan.logprobs.token_ids,
        perf_metrics: plan.perf_metrics,
        timings: endpoint.switches.timings,
    };
    let mut run = Run::start(endpoint, plan, attempt.earlier()).await?;
    let head = Head {
        schema_url: endpoint.switches.schema_url.clone(),
        id: attempt.id("cmpl-"),
        created_s: attempt.created_s,
        model: run.model_id.clone(),
        system_fingerprint: run.system_fingerprint.clone(),
    };
    let dropped_tokens = run.dropped_tokens;
    let response = if streaming.stream {
        let progress = attempt.progress(&head.id, &run);
        let streaming = attempt.remaining(streaming);
        let chunks = chunks(run, head, members, streaming, progress.clone());
        streamed(endpoint, chunks, progress)
    } else {
        let choices = run.choices().await?;
        Response::json(
            200,
            render::whole(&head, &choices, run.perf_metrics(), members),
        )
    };
    Ok(with_dropped_tokens(response, dropped_tokens))
}

/// The events of a streaming answer (specification 10.5), the last one being `[DONE]`. Every candidate
/// is a choice, because ranking would need whole candidates. `progress` is the position after the last
/// event that was taken.
fn chunks(
    run: Run,
    head: Head,
    members: Members,
    streaming: Streaming,
    progress: Rc<Progress>,
) -> impl Stream<Item = Vec<u8>> {
    enum Phase {
        Pieces(Box<Run>),
        Done,
        Closed,
    }
    let head = Rc::new(head);
    let pieces = Phase::Pieces(Box::new(run));
    stream::unfold(pieces, move |phase| {
        let (head, progress) = (head.clone(), progress.clone());
        async move {
            let mut run = match phase {
                Phase::Pieces(run) => run,
                Phase::Done => return Some((http::DONE.to_vec(), Phase::Closed)),
                Phase::Closed => return None,
            };
            match run.next_piece().await {
                Ok(Some((index, piece))) => {
                    let delivered = run.delivered()[index];
                    progress.update(|position| position.candidates[index] = delivered);
                    let ends = streaming.usage_in_last_choice && run.is_over();
                    let counts = match (streaming.include_usage, ends) {
                        (true, true) => {
                            progress.update(|position| position.usage_sent = true);
                            Some(run.counts())
                        }
                        _ => streaming
                            .continuous_usage
                            .then(|| run.candidate_counts(index)),
                    };
                    let chunk = Chunk {
                        index,
                        piece: &piece,
                        counts,
                        perf: run.is_over().then(|| run.perf_metrics()),
                    };
                    let json = render::chunk(&head, chunk, streaming.include_usage, members);
                    Some((http::event(&json), Phase::Pieces(run)))
                }
                Ok(None) if streaming.include_usage && !streaming.usage_in_last_choice => {
                    progress.update(|position| position.usage_sent = true);
                    let json = render::usage_chunk(&head, run.counts());
                    Some((http::event(&json), Phase::Done))
                }
                Ok(None) => Some((http::DONE.to_vec(), Phase::Closed)),
                // Dropping the run cancels the generation.
                Err(error) => {
                    progress.fail(&error);
                    let event = http::event(&Failure::from(&error).body());
                    Some((event, Phase::Done))
                }
            }
        }
    })
}
