//! `POST /rerank` (specification 23): parses the body, scores each document beside the query with a reranker, and renders the
//! documents in the order of their scores.

mod parse;
mod render;
mod score;

use super::embeddings::check_length;
use super::route::{Route, Upstream};
use crate::api::endpoint::Endpoint;
use crate::api::expected_wait::RequestTimer;
use crate::api::fields::{KeptTokens, out_of_range};
use crate::api::http::{Request, Response};
use crate::api::models::{Purpose, ReadyEmbedder};
use crate::api::random_id;
use crate::api::run::Deadline;
use crate::engine::embed::EmbeddingInput;
use crate::text::{Pair, PairEncoder, Pause};
use crate::{Error, Result};

pub(in crate::api) static ROUTE: Route = Route {
    path: "rerank",
    method: "POST",
    purpose: Some(Purpose::Rerank),
    upstream: Upstream::Chosen,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "documents in the order of their scores: [Rerank](#rerank)",
    #[cfg(test)]
    fields: parse::RerankFields::listed,
};

/// Another name of the route, which llama.cpp has, too.
pub(in crate::api) static RERANKING: Route = Route {
    path: "reranking",
    #[cfg(test)]
    response: "the same as `/rerank`",
    ..ROUTE
};

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<parse::RerankFields>();
    visitor.visit::<render::RerankList<'static>>();
}

/// Answers the request. Dropping the future cancels what is computed for it.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let switches = &endpoint.switches;
    let plan = parse::parse(&request.body, switches, warn_unknown)?;
    let mut deadline = Deadline::new(&*endpoint.host, switches.request_timeout_ms);
    let now_ms = || endpoint.host.now_ms();
    let ready = endpoint
        .models
        .ready_to_rerank(&plan.model, switches, now_ms);
    let (model_id, model) = deadline.limit(ready).await?;
    let pause = || endpoint.host.sleep_ms(0);
    check_length("query", &plan.query, false, &model)?;
    let pairs = model.tokenizer.pairs(&plan.query, &plan.documents, &pause);
    let pairs = deadline.limit(pairs).await?;
    let is_cut = plan.kept != KeptTokens::All || plan.max_document_tokens.is_some();
    let mut inputs = Vec::with_capacity(plan.documents.len());
    let mut dropped_tokens = 0;
    for document in &plan.documents {
        check_length("documents", document, is_cut, &model)?;
        let pair = fitting_pair(&plan, document, &pairs, &model, &pause);
        let (pair, dropped) = deadline.limit(pair).await?;
        dropped_tokens += dropped;
        inputs.push(EmbeddingInput {
            ids: pair.ids,
            first_tokens: pair.first_tokens,
        });
    }
    let prompt_tokens = inputs.iter().map(|input| input.ids.len()).sum();
    let outputs = model.engine.submit(inputs)?.vectors();
    let timer = RequestTimer::start(&endpoint.pace, &endpoint.host);
    let outputs = deadline.limit(outputs).await?;
    drop(timer);
    let outputs = outputs.iter();
    let scores = outputs.map(|outputs| score::score(outputs, plan.uses_activation));
    let scores: Vec<f64> = scores.collect();
    let results = score::best(&scores, plan.top_n).into_iter().map(|index| {
        let document = plan.returns_documents.then(|| render::RerankDocument {
            text: &plan.documents[index],
        });
        render::RerankResult {
            index,
            relevance_score: scores[index],
            document,
        }
    });
    let id = random_id::answer_id("rerank-");
    let body = render::list(&id, &model_id, results.collect(), prompt_tokens);
    let mut response = Response::json(200, body);
    if dropped_tokens > 0 {
        response.push_header("x-prompt-truncated", &dropped_tokens.to_string());
    }
    Ok(response)
}

/// The tokens of the query and a document within the limits of the request, and the number of tokens that were cut off.
async fn fitting_pair(
    plan: &parse::Plan,
    document: &str,
    pairs: &PairEncoder<'_>,
    model: &ReadyEmbedder,
    pause: Pause<'_>,
) -> Result<(Pair, usize)> {
    let mut pair = pairs.encode(document, pause).await?;
    let whole = pair.ids.len();
    if let Some(most) = plan.max_document_tokens {
        pair.cut_document(pair.document.len().saturating_sub(most));
    }
    let context_tokens = model.engine.context_tokens();
    let most = match plan.kept {
        KeptTokens::All => usize::MAX,
        KeptTokens::Fitting(_) => context_tokens,
        KeptTokens::AtMost(most, _) => most,
    };
    let excess = pair.ids.len().saturating_sub(most);
    if excess > 0 && excess >= pair.document.len() {
        let others = pair.ids.len() - pair.document.len();
        let bounds = format!("above {others}, the number of tokens without the document");
        return Err(out_of_range("truncate_prompt_tokens", &bounds, most));
    }
    pair.cut_document(excess);
    if pair.ids.len() > context_tokens {
        let sent = format!(
            "The query and a document have {} tokens together",
            pair.ids.len()
        );
        return Err(Error::exceeds_context("documents", context_tokens, sent));
    }
    let dropped = whole - pair.ids.len();
    Ok((pair, dropped))
}
