//! `POST /responses/input_tokens` (specification 20.5): how many tokens the input of a response has. Nothing is computed on
//! the device.

use serde::Serialize;

#[cfg(test)]
use super::request;
use super::{RENAMED, parse};
use crate::api::endpoint::Endpoint;
use crate::api::error::rename_param;
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::routes::route::{Route, Upstream};
use crate::api::routes::tokens::ready;
use crate::api::run::ids_of;
use crate::text::LocalTime;
use crate::{Error, Result};

pub(in crate::api) static ROUTE: Route = Route {
    path: "responses/input_tokens",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Never,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "how many tokens the input of a response has",
    #[cfg(test)]
    fields: request::ResponseFields::listed,
};

/// The number of tokens of an input.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseInputTokenCount"))]
pub(super) struct InputTokenCount {
    #[cfg_attr(test, ts(type = "\"response.input_tokens\""))]
    object: &'static str,
    input_tokens: usize,
}

/// Answers the request.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let host = &endpoint.host;
    let now = LocalTime::new(host.now_ms() / 1000, host.utc_offset_minutes());
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let (mut plan, _) = parse::parse(&request.body, &endpoint.switches, now, warn_unknown)?;
    plan.images.attach(&request.attachments)?;
    let prompt = plan.prompts.pop();
    let prompt = prompt.ok_or_else(|| Error::Internal("a response without a prompt".into()))?;
    let model = ready(endpoint, &plan.model).await?;
    let add_special = plan.prompt_tokens.add_special;
    let ids = ids_of(prompt, &plan.images, add_special, &model, endpoint).await;
    let ids = ids.map_err(|error| rename_param(error, RENAMED))?;
    let count = InputTokenCount {
        object: "response.input_tokens",
        input_tokens: ids.len(),
    };
    Ok(Response::json(200, to_json(&count)))
}
