//! The answer of `POST /embeddings`.

use serde::Serialize;

use super::parse::Encoding;
use super::vector::base64;
use crate::api::json::to_json;

/// The vectors of a request's inputs, in their order.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct EmbeddingList<'a> {
    #[cfg_attr(test, ts(type = "\"list\""))]
    object: &'a str,
    data: Vec<Embedding<'a>>,
    /// The id of the model that answered.
    model: &'a str,
    usage: EmbeddingUsage,
}

/// The vector of one input.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Embedding<'a> {
    #[cfg_attr(test, ts(type = "\"embedding\""))]
    object: &'a str,
    /// The input's place.
    index: usize,
    /// Numbers, or base64 if that was asked for.
    #[cfg_attr(test, ts(type = "number[] | string"))]
    embedding: Written,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Written {
    Float(Vec<f32>),
    Base64(String),
}

/// Token counts of an embedding request.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct EmbeddingUsage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// The whole answer.
pub(super) fn list(
    model_id: &str,
    vectors: Vec<Vec<f32>>,
    encoding: Encoding,
    prompt_tokens: usize,
) -> Vec<u8> {
    let data = vectors.into_iter().enumerate().map(|(index, vector)| {
        let embedding = match encoding {
            Encoding::Float => Written::Float(vector),
            Encoding::Base64 => Written::Base64(base64(&vector)),
        };
        Embedding {
            object: "embedding",
            index,
            embedding,
        }
    });
    to_json(&EmbeddingList {
        object: "list",
        data: data.collect(),
        model: model_id,
        usage: EmbeddingUsage {
            prompt_tokens,
            total_tokens: prompt_tokens,
        },
    })
}
