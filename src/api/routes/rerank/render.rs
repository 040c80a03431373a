//! The answer of `POST /rerank`.

use serde::Serialize;

use crate::api::json::to_json;

/// Documents in the order of their scores.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct RerankList<'a> {
    #[cfg_attr(test, ts(type = "\"list\""))]
    object: &'a str,
    id: &'a str,
    /// The id of the model that answered.
    model: &'a str,
    /// The best document first; of equal ones the earlier.
    results: Vec<RerankResult<'a>>,
    usage: RerankUsage,
    /// The token counts as Cohere's API has them. The AI SDK's provider for Cohere refuses an answer without this member.
    meta: RerankMeta,
}

/// A document and its score.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct RerankResult<'a> {
    /// The document's place in the request.
    pub index: usize,
    /// The score of the document, from 0 to 1 with `use_activation`.
    pub relevance_score: f64,
    /// The document, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub document: Option<RerankDocument<'a>>,
}

/// The text of a document.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct RerankDocument<'a> {
    pub text: &'a str,
}

/// Token counts of a request: those of the query count once for each document.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct RerankUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// What Cohere's answers say about the request.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct RerankMeta {
    tokens: RerankMetaTokens,
}

/// Token counts as Cohere names them.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct RerankMetaTokens {
    input_tokens: usize,
}

/// The whole answer.
pub(super) fn list(
    id: &str,
    model: &str,
    results: Vec<RerankResult<'_>>,
    prompt_tokens: usize,
) -> Vec<u8> {
    to_json(&RerankList {
        object: "list",
        id,
        model,
        results,
        usage: RerankUsage {
            prompt_tokens,
            total_tokens: prompt_tokens,
        },
        meta: RerankMeta {
            tokens: RerankMetaTokens {
                input_tokens: prompt_tokens,
            },
        },
    })
}
