//! `GET /models` and `GET /models/{id}` (specification 13).

use serde::Serialize;

use super::route::{Route, Upstream};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::http::Response;
use crate::api::json::to_json;
use crate::api::models::{Entry, ModelState, Models, ToolPrompts};
use crate::api::switches::Switches;

/// `GET /models`.
pub(in crate::api) static LIST: Route = Route {
    path: "models",
    method: "GET",
    purpose: None,
    upstream: Upstream::Never,
    answer: |endpoint, _, _| Box::pin(async { Ok(list(endpoint)) }),
    #[cfg(test)]
    response: "the registered models, with `status` and `capabilities`; of an engine with several models all, loaded or not",
    #[cfg(test)]
    fields: Vec::new,
};

/// `GET /models/{id}`.
pub(in crate::api) static CARD: Route = Route {
    path: "models/",
    method: "GET",
    purpose: None,
    upstream: Upstream::Never,
    answer: |endpoint, _, id| Box::pin(async move { card(endpoint, &id) }),
    #[cfg(test)]
    response: "one of them; `default` and aliases are resolved, `%2F` and `/` in an id are the same",
    #[cfg(test)]
    fields: Vec::new,
};

/// Visits the types of the answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<ModelList<'static>>();
}

/// All models, without the alias.
fn list(endpoint: &Endpoint) -> Response {
    Response::json(200, body(&endpoint.models, &endpoint.switches))
}

fn body(models: &Models, switches: &Switches) -> Vec<u8> {
    let entries = models.entries();
    let card = |entry| ModelCard::new(entry, switches);
    to_json(&ModelList {
        object: "list",
        data: entries.iter().map(card).collect(),
    })
}

/// The model that `name` refers to.
fn card(endpoint: &Endpoint, name: &str) -> Result<Response> {
    let switches = &endpoint.switches;
    let entry = endpoint.models.find(name, switches)?;
    let card = ModelCard::new(&entry, switches);
    Ok(Response::json(200, to_json(&card)))
}

/// The registered models.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct ModelList<'a> {
    #[cfg_attr(test, ts(type = "\"list\""))]
    object: &'a str,
    data: Vec<ModelCard<'a>>,
}

/// One model as the endpoint lists it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ModelCard<'a> {
    id: &'a str,
    #[cfg_attr(test, ts(type = "\"model\""))]
    object: &'a str,
    /// Unix seconds of the registration.
    created: u64,
    owned_by: &'a str,
    #[cfg_attr(test, ts(type = "\"unloaded\" | \"loading\" | \"ready\" | \"failed\""))]
    status: &'a str,
    /// The longest sequence in tokens; only of a ready model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    context_length: Option<usize>,
    /// The same, by its name in vLLM.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    max_model_len: Option<usize>,
    /// `completions`, and `chat` if it has a chat template; `embeddings`, or `rerank`.
    capabilities: &'a [&'a str],
    /// The form of tools in prompts; only of a ready model with a chat template.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    tools: Option<ToolPrompts>,
}

impl ModelCard<'_> {
    fn new<'a>(entry: &'a Entry, switches: &Switches) -> ModelCard<'a> {
        let (status, context_length) = match &entry.state {
            ModelState::Unloaded => ("unloaded", None),
            ModelState::Loading => ("loading", None),
            ModelState::Ready(ready) => ("ready", Some(ready.engine.context_tokens())),
            ModelState::ReadyToEmbed(ready) => ("ready", Some(ready.engine.context_tokens())),
            ModelState::Failed(_) | ModelState::WillRetry { .. } => ("failed", None),
        };
        ModelCard {
            id: &entry.id,
            object: "model",
            created: entry.created_s,
            owned_by: "inpage",
            status,
            context_length,
            max_model_len: context_length,
            capabilities: match &entry.state {
                ModelState::ReadyToEmbed(ready) if ready.ranks => &["rerank"],
                ModelState::ReadyToEmbed(_) => &["embeddings"],
                ModelState::Ready(ready) if ready.chats(switches) => &["completions", "chat"],
                _ => &["completions"],
            },
            tools: match &entry.state {
                ModelState::Ready(ready) => ready.tools,
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_in_order_without_the_alias() {
        let models = Models::default();
        models.set("org/b", ModelState::Loading, 7000);
        models.set("a", ModelState::Failed("no memory".into()), 8500);
        models.set("org/b", ModelState::Unloaded, 9000);
        let list = String::from_utf8(body(&models, &Switches::default())).unwrap();
        assert_eq!(
            list,
            r#"{"object":"list","data":[{"id":"org/b","object":"model","created":7,"owned_by":"inpage","status":"unloaded","capabilities":["completions"]},{"id":"a","object":"model","created":8,"owned_by":"inpage","status":"failed","capabilities":["completions"]}]}"#
        );
    }
}
