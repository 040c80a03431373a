//! `POST /embeddings` (specification 19): parses the body, runs the inputs through a model that embeds, and
//! renders their vectors.

mod parse;
mod render;
#[cfg(test)]
mod tests;
mod tokens;
mod vector;

pub(super) use tokens::check_length;

use super::route::{Route, Upstream};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::expected_wait::RequestTimer;
use crate::api::fields::out_of_range;
use crate::api::http::{Request, Response};
use crate::api::models::Purpose;
use crate::api::run::Deadline;

pub(in crate::api) static ROUTE: Route = Route {
    path: "embeddings",
    method: "POST",
    purpose: Some(Purpose::Embeddings),
    upstream: Upstream::Chosen,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "vectors of texts: [Embeddings](#embeddings)",
    #[cfg(test)]
    fields: parse::EmbeddingFields::listed,
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<parse::EmbeddingFields>();
    visitor.visit::<render::EmbeddingList<'static>>();
}

/// Answers the request. Dropping the future cancels what is computed for it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let plan = parse::parse(&request.body, &endpoint.switches, warn_unknown)?;
    let switches = &endpoint.switches;
    let mut deadline = Deadline::new(&*endpoint.host, switches.request_timeout_ms);
    let now_ms = || endpoint.host.now_ms();
    let ready = endpoint
        .models
        .ready_to_embed(&plan.model, switches, now_ms);
    let (model_id, model) = deadline.limit(ready).await?;
    let width = model.engine.width();
    if let Some(dimensions) = plan.dimensions.filter(|wanted| *wanted > width) {
        let bounds = format!("from 1 to {width}, the width of this model's vectors");
        return Err(out_of_range("dimensions", &bounds, dimensions));
    }
    let pause = || endpoint.host.sleep_ms(0);
    let mut inputs = Vec::with_capacity(plan.inputs.len());
    let mut dropped_tokens = 0;
    for input in plan.inputs {
        let tokens = tokens::of(input, plan.tokens, &model, &pause);
        let tokens = deadline.limit(tokens).await?;
        dropped_tokens += tokens.dropped;
        inputs.push(tokens.ids);
    }
    let prompt_tokens = inputs.iter().map(Vec::len).sum();
    let vectors = model.engine.submit(inputs)?.vectors();
    let timer = RequestTimer::start(&endpoint.pace, &endpoint.host);
    let mut vectors = deadline.limit(vectors).await?;
    drop(timer);
    if let Some(dimensions) = plan.dimensions {
        for vector in &mut vectors {
            vector::shorten(vector, dimensions);
        }
    }
    let body = render::list(&model_id, vectors, plan.encoding, prompt_tokens);
    let mut response = Response::json(200, body);
    if dropped_tokens > 0 {
        response.push_header("x-prompt-truncated", &dropped_tokens.to_string());
    }
    Ok(response)
}
