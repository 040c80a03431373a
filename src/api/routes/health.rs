//! `GET /health` (specification 1.7): whether a model answers requests now.

use serde::Serialize;

use super::route::{Route, Upstream};
use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::http::Response;
use crate::api::json::to_json;

pub(in crate::api) static ROUTE: Route = Route {
    path: "health",
    method: "GET",
    purpose: None,
    upstream: Upstream::Never,
    answer: |endpoint, _, _| Box::pin(async { answer(endpoint) }),
    #[cfg(test)]
    response: "`{\"status\": \"ok\"}` if a model is ready, else 503; needs no key",
    #[cfg(test)]
    fields: Vec::new,
};

/// Visits the types of the answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<Health>();
}

/// A model answers requests.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(in crate::api) struct Health {
    #[cfg_attr(test, ts(type = "\"ok\""))]
    status: &'static str,
}

/// Answers the request.
fn answer(endpoint: &Endpoint) -> Result<Response> {
    endpoint.models.check_health(endpoint.host.now_ms())?;
    Ok(Response::json(200, to_json(&Health { status: "ok" })))
}
