//! `POST /apply-template`: the text that the chat template makes of messages.

use serde::Serialize;

use super::{check_fields, conversation, ready};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::fields::{
    Body, conversation as messages, functions, model, reasoning, request, tools,
};
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::routes::route::{Route, Upstream};
use crate::api::run::text_of;

pub(in crate::api) static ROUTE: Route = Route {
    path: "apply-template",
    method: "POST",
    purpose: Some(Purpose::Text),
    upstream: Upstream::Never,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "the text that the chat template makes of messages",
    #[cfg(test)]
    fields: TemplateFields::listed,
};

request! {
    /// A request for the text of messages; `docs/api.md` says what each field means.
    TemplateFields:
        model::ModelFields,
        messages::ConversationFields,
        reasoning::ReasoningFields,
        tools::ToolFields,
        functions::FunctionFields,
}

/// The text that a chat template made of messages.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct RenderedTemplate {
    prompt: String,
}

/// Answers the request.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let mut fields = Body::parse_fields(&request.body)?;
    check_fields(endpoint, &fields, TemplateFields::names)?;
    let name = model::read(&fields, &endpoint.switches)?;
    let chat = conversation(endpoint, &mut fields)?;
    model::check_user(&fields)?;
    let model = ready(endpoint, &name).await?;
    let prompt = text_of(chat, &model)?;
    Ok(Response::json(200, to_json(&RenderedTemplate { prompt })))
}
