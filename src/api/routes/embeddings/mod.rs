//! `POST /embeddings` (specification 19): parses the body, runs the inputs through a model that embeds, and
//! renders their vectors.

mod parse;
mod render;
#[cfg(test)]
mod tests;
mod vector;

use super::route::{Route, Upstream};
use crate::api::endpoint::Endpoint;
use crate::api::error::fault;
use crate::api::expected_wait::RequestTimer;
use crate::api::fields::{Prompt, invalid_value, out_of_range};
use crate::api::http::{Request, Response};
use crate::api::models::{Purpose, ReadyEmbedder};
use crate::api::run::Deadline;
use crate::text::{Pause, Special};
use crate::{Error, RequestFault, Result};

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
    for input in plan.inputs {
        inputs.push(deadline.limit(ids_of(input, &model, &pause)).await?);
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
    Ok(Response::json(200, body))
}

/// The ids of an input: a text with the tokens that the model's tokenizer adds, or the ids as given.
async fn ids_of(input: Prompt, model: &ReadyEmbedder, pause: Pause<'_>) -> Result<Vec<u32>> {
    match input {
        Prompt::Text(text) if text.is_empty() => {
            Err(invalid_value("input", "must not be an empty string"))
        }
        Prompt::Text(text) => {
            check_size(&text, model)?;
            let special = Special::Added;
            model
                .tokenizer
                .encode_in_slices(&text, special, pause)
                .await
        }
        Prompt::Conversation(_) | Prompt::Mixed(_) => {
            Err(Error::Internal("an input of another route".into()))
        }
        Prompt::Tokens(ids) => {
            let known = model.tokenizer.vocab_size().min(model.engine.vocab_size());
            match ids.iter().find(|id| **id as usize >= known) {
                Some(id) => {
                    let bounds = format!("made of token ids below {known}");
                    Err(out_of_range("input", &bounds, id))
                }
                None => Ok(ids),
            }
        }
    }
}

/// Rejects a text that exceeds the context with any tokenization, without tokenizing megabytes, and a long text for a
/// tokenizer that drops text: the number of its tokens says nothing, and it is tokenized without a pause.
fn check_size(text: &str, model: &ReadyEmbedder) -> Result<()> {
    const CHECKED_FROM_BYTES: usize = 1 << 16;
    const MAX_DROPPED_BYTES: usize = 1 << 20;
    let context_tokens = model.engine.context_tokens();
    if text.len() < CHECKED_FROM_BYTES {
        return Ok(());
    }
    let fits = match model.tokenizer.fewest_tokens(text.len()) {
        0 => text.len() <= MAX_DROPPED_BYTES,
        fewest => fewest <= context_tokens,
    };
    if fits {
        return Ok(());
    }
    let message = format!(
        "input: {} bytes of text are too many for a context of {context_tokens} tokens",
        text.len()
    );
    Err(fault(RequestFault::ContextLengthExceeded, "input", message))
}
