//! The endpoint: turns HTTP requests into HTTP responses as the specification defines. Only this module
//! handles JSON and HTTP. Token ids pass through it between the tokenizer and the engine.
//!
//! In order of dependency, each using the ones below it:
//!
//! | file | part |
//! |---|---|
//! | `mod` | [`Handler`]: the checks that precede every route |
//! | `routes/` | the table of routes; each route parses its body into a plan and renders the result |
//! | `run/` | runs a plan: prompts that fit, candidates as pieces of text, ranking, deadline |
//! | `plan` | what every route that generates text produces |
//! | `fields/` | declarations of request fields; groups of them that routes share, validated one by one |
//! | `endpoint` | what all routes share |
//! | `models` | the registered models and their states |
//! | `http/` | requests, responses, headers, authorization, URLs, server-sent events |
//! | `switches/` | settings and their presets |
//! | `progress` | how much of an answer was delivered |
//! | `error` | the error catalogue |
//! | `expected_wait` | `Retry-After` of what is refused for now |
//! | `host`, `json`, `random_id` | time and log; JSON text; names of answers |
//!
//! `docs/adding-a-route.md` says how a route is added.

use std::rc::Rc;

mod endpoint;
mod error;
mod expected_wait;
mod fields;
mod host;
mod http;
mod json;
mod models;
mod plan;
mod progress;
mod random_id;
#[cfg(test)]
mod reference;
mod routes;
mod run;
mod switches;

pub use crate::engine::generation::SamplingDefaults;
pub use crate::grammar::OutputForm;
pub use error::Failure;
#[cfg(not(target_arch = "wasm32"))]
pub use host::SystemHost;
pub use host::{DecodedImage, FetchedImage, Host, ImageError};
pub use http::{Attachment, Body, Request, Response};
pub use models::{
    Fingerprint, ImageReader, ModelState, ReadyEmbedder, ReadyModel, ToolPrompts, VocabularyTables,
};
pub use progress::Progress;
#[cfg(feature = "test-hooks")]
pub use routes::paths_with_bodies;
pub use switches::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MessageWord, MirostatTargetUnit, SamplingBounds, SpeculationMode, SuffixMode,
    Switches, TextOffsetBase, ToolNames, UnknownFields, UsagePlace, UseModelDefaults,
    WhenModelNotReady,
};

use crate::{Error, RequestFault, Result};
use endpoint::Endpoint;
use error::fault_without_param;

/// Visits the types of requests, answers and switches, which are declared in TypeScript.
#[cfg(test)]
pub(crate) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    routes::visit_types(visitor);
    visitor.visit::<error::ErrorBody<'static>>();
    visitor.visit::<error::AnthropicErrorBody<'static>>();
    visitor.visit::<error::RerankErrorBody<'static>>();
    visitor.visit::<switches::EngineSwitches>();
}

/// The facts about the endpoint that TypeScript knows besides its types.
#[cfg(test)]
pub(crate) fn constants() -> Vec<crate::typescript::Constant> {
    let [switches, profiles] = switches::constants();
    vec![
        routes::constant(),
        routes::root_paths_constant(),
        switches,
        profiles,
    ]
}

/// The endpoint. Answers any number of requests at once.
pub struct Handler(Endpoint);

impl Handler {
    /// An endpoint without models.
    pub fn new(switches: Switches, host: Rc<dyn Host>) -> Handler {
        Handler(Endpoint::new(switches, host))
    }

    /// The switches it was made with.
    pub fn switches(&self) -> &Switches {
        &self.0.switches
    }

    /// Time and log.
    pub fn host(&self) -> Rc<dyn Host> {
        self.0.host.clone()
    }

    /// Registers a model or changes its state.
    pub fn set_model(&self, id: &str, state: ModelState) {
        self.0.models.set(id, state, self.0.host.now_ms());
    }

    /// The share (0 to 1) of a loading model that was read. It decides how long refused requests are told to wait.
    pub fn set_load_progress(&self, id: &str, share: f64) {
        self.0.models.set_load_progress(id, share);
    }

    /// Removes a model.
    pub fn remove_model(&self, id: &str) {
        self.0.models.remove(id);
    }

    /// Answers a request. Dropping the future or the response's body cancels what is being
    /// generated for it.
    pub async fn handle(&self, request: Request) -> Response {
        let response = match self.answer(&request).await {
            Ok(response) => response,
            Err(error) => {
                let status = self.0.switches.invalid_request_status;
                let mut failure = Failure::with_status(&error, status);
                if matches!(error, Error::QueueFull { .. }) {
                    let now_ms = self.0.host.now_ms();
                    failure.retry_after_s = Some(self.0.pace.retry_after_s(now_ms));
                }
                let response = Response::failure(&failure);
                response.progress.fail(&error);
                response
            }
        };
        self.finish(&request, response)
    }

    /// The answer to a request that does not depend on its body, or `None`. `body_bytes` is the length that its head
    /// states, or 0. A server asks this before it reads the body.
    pub fn answer_before_body(&self, request: &Request, body_bytes: u64) -> Option<Response> {
        let response = match self.check_head(request, body_bytes) {
            Ok(Checked::Route(..)) => return None,
            Ok(Checked::Answered(response)) => response,
            Err(error) => Response::failure(&Failure::from(&error)),
        };
        Some(self.finish(request, response))
    }

    /// The answer of a server that refuses `request` for a reason that the endpoint does not know, in the form of its route.
    pub fn refuse(&self, request: &Request, failure: &Failure) -> Response {
        self.finish(request, Response::failure(failure))
    }

    fn finish(&self, request: &Request, response: Response) -> Response {
        let switches = &self.0.switches;
        let form = routes::error_form(&request.url, &switches.base_paths);
        let allow_origin = &switches.cors.allow_origin;
        response.finish(&random_id::request_id(), allow_origin, form)
    }

    async fn answer(&self, request: &Request) -> Result<Response> {
        match self.check_head(request, request.body.len() as u64)? {
            Checked::Route(route, parameter) => (route.answer)(&self.0, request, parameter).await,
            Checked::Answered(response) => Ok(response),
        }
    }

    /// The checks of specification 2.3 that come before the body.
    fn check_head(&self, request: &Request, body_bytes: u64) -> Result<Checked> {
        let switches = &self.0.switches;
        let (route, parameter) = routes::find(&request.url, &switches.base_paths)
            .ok_or_else(|| routes::unknown_url(&request.url, &switches.base_paths))?;
        if request.method == "OPTIONS" {
            return Ok(Checked::Answered(Response::preflight(request)));
        }
        if request.method != route.method {
            let allow = route.allow();
            let method: String = request.method.chars().take(16).collect();
            let message = format!("{method} is not allowed here: use {allow}");
            let error = fault_without_param(RequestFault::MethodNotAllowed, message);
            let mut response = Response::failure(&Failure::from(&error));
            response.push_header("allow", &allow);
            return Ok(Checked::Answered(response));
        }
        if route.needs_key() {
            http::check_authorization(request, switches.api_key.as_deref())?;
        }
        if route.method == "POST" {
            check_body_form(request, body_bytes, switches.max_body_bytes)?;
        }
        Ok(Checked::Route(route, parameter))
    }
}

/// A request whose head was checked.
enum Checked {
    /// The route answers, with the parameter of its path.
    Route(&'static routes::Route, String),
    /// The answer.
    Answered(Response),
}

/// Checks media type and size of the body.
fn check_body_form(request: &Request, body_bytes: u64, max_body_bytes: usize) -> Result<()> {
    if !request.has_json_content_type() {
        return Err(fault_without_param(
            RequestFault::UnsupportedMediaType,
            "the content type must be application/json",
        ));
    }
    if body_bytes > max_body_bytes as u64 {
        return Err(fault_without_param(
            RequestFault::RequestTooLarge,
            format!("the body has {body_bytes} bytes, more than {max_body_bytes}"),
        ));
    }
    Ok(())
}
