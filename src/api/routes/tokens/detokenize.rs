//! `POST /detokenize`: the text of ids.

use serde::Serialize;

use super::{ready, report_unknown};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::fields::kinds::{Flag, Shape, flag, shape};
use crate::api::fields::{
    Body, Field, Or, Prompt, PromptReader, check_ids, fields, invalid_value, missing, model,
    out_of_range, request,
};
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::routes::route::{Route, Upstream};

pub(in crate::api) static ROUTE: Route = Route {
    path: "detokenize",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Never,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "the text of ids",
    #[cfg(test)]
    fields: DetokenizeFields::listed,
};

/// The maximum number of ids of a request to a model with a smaller context. It bounds the text of an answer: a token may
/// have hundreds of bytes.
const MAX_TOKENS: usize = 1 << 18;

fields! {
    DetokenizeOwnFields {
        /// Token ids.
        tokens: Field<Shape> = shape("int[]", "ArrayLike<number>").required(),
        /// Leave special tokens out of the text.
        skip_special_tokens: Or<Flag> = flag().or(false).of("vLLM"),
    }
}

request! {
    /// A request for the text of token ids; `docs/api.md` says what each field means.
    DetokenizeFields:
        model::ModelFields,
        DetokenizeOwnFields,
}

/// The text of token ids.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct TokenText<'a> {
    prompt: &'a str,
    /// The same, by its name in llama.cpp.
    content: &'a str,
}

/// Answers the request.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let tokens = PromptReader {
        field: DetokenizeOwnFields::tokens.name,
        max_prompts: 1,
        null_is_text: false,
        is_mixed: false,
        may_be_empty: true,
    };
    let Body { fields, prompts } = Body::parse_with(&request.body, tokens)?;
    report_unknown(endpoint, fields.names(), DetokenizeFields::names)?;
    let name = model::read(&fields, &endpoint.switches)?;
    let tokens = prompts
        .ok_or_else(|| missing(DetokenizeOwnFields::tokens.name))??
        .pop();
    let Some(Prompt::Tokens(ids)) = tokens else {
        return Err(invalid_value("tokens", "must be an array of token ids"));
    };
    model::check_user(&fields)?;
    let skip_special =
        DetokenizeOwnFields::skip_special_tokens.read(&fields, &endpoint.switches)?;

    let model = ready(endpoint, &name).await?;
    let most = model.context_tokens.max(MAX_TOKENS);
    if ids.len() > most {
        let bounds = format!("at most {most} ids");
        return Err(out_of_range("tokens", &bounds, ids.len()));
    }
    check_ids("tokens", &ids, model.vocab_size)?;
    let text = &model.tokenizer.decode(&ids, skip_special);
    let (prompt, content) = (text, text);
    let body = to_json(&TokenText { prompt, content });
    Ok(Response::json(200, body))
}
