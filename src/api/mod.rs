//! The endpoint: HTTP requests in, HTTP responses out, exactly as docs/specification.md says; the only place that
//! knows JSON. It knows token ids only as something to pass between the tokenizer and the engine.
//!
//! | file | part |
//! |---|---|
//! | `http`, `route`, `auth` | requests, responses, headers, who may |
//! | `request/` | the body, validated field by field |
//! | `models` | which models there are and whether they answer |
//! | `completions` | the order of a completion, from the body to the answer |
//! | `prompt`, `context`, `constraint` | prompts as ids that fit; what a completion must be |
//! | `choice`, `stop_ids`, `logprobs` | a candidate's tokens as text; what ends it; how they are listed |
//! | `merge`, `ranking`, `deadline` | several candidates; the best of them; how long it may take |
//! | `response`, `sse` | the wire forms |
//! | `error` | the error catalogue |
//! | `switches`, `host` | settings; time and log |

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

mod auth;
mod choice;
#[cfg(test)]
mod choice_tests;
mod completions;
mod constraint;
mod context;
mod deadline;
mod error;
mod host;
mod http;
mod logprobs;
mod merge;
mod models;
mod prompt;
mod random_id;
mod ranking;
mod request;
mod response;
mod route;
mod sse;
mod stop_ids;
mod switches;

pub use crate::engine::generation::SamplingDefaults;
pub use crate::grammar::CallFormat;
pub use constraint::LazyCompiler;
pub use error::Failure;
pub use host::Host;
#[cfg(not(target_arch = "wasm32"))]
pub use host::SystemHost;
pub use http::{Body, Request, Response};
pub use models::{Fingerprint, ModelState, ReadyModel};
pub use switches::{
    ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens, MirostatTargetUnit,
    SuffixMode, Switches, TextOffsetBase, UnknownFields, WhenModelNotReady,
};

use crate::{RequestFault, Result};
use error::fault_without_param;
use models::Models;
use route::Route;

/// Names of unknown fields that are remembered in order to warn once; a client that invents more
/// goes unheard.
const MAX_WARNED_NAMES: usize = 256;

/// Visits the types of requests, answers and switches, to be declared in TypeScript.
#[cfg(test)]
pub(crate) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<request::CompletionFields>();
    visitor.visit::<response::Completion<'static>>();
    visitor.visit::<response::Call<'static>>();
    visitor.visit::<models::ModelList<'static>>();
    visitor.visit::<error::ErrorBody<'static>>();
    visitor.visit::<switches::EngineSwitches>();
}

/// The endpoint. Cheap to keep; answers any number of requests at once.
pub struct Handler {
    switches: Switches,
    host: Rc<dyn Host>,
    models: Models,
    warned: RefCell<BTreeSet<String>>,
}

impl Handler {
    /// An endpoint without models.
    pub fn new(switches: Switches, host: Rc<dyn Host>) -> Handler {
        Handler {
            switches,
            host,
            models: Models::default(),
            warned: RefCell::default(),
        }
    }

    /// The switches it was made with.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Registers a model or changes its state.
    pub fn set_model(&self, id: &str, state: ModelState) {
        self.models.set(id, state, self.host.now_ms() / 1000);
    }

    /// Forgets a model.
    pub fn remove_model(&self, id: &str) {
        self.models.remove(id);
    }

    /// Answers a request. Dropping the future or the response's body cancels what is being
    /// generated for it.
    pub async fn handle(&self, request: Request) -> Response {
        let request_id = random_id::request_id();
        let response = match self.answer(&request).await {
            Ok(response) => response,
            Err(error) => Response::failure(&Failure::from(&error)),
        };
        response.finish(&request_id, &self.switches)
    }

    /// The checks of specification 2.3 that come before the body, then the route's own work.
    async fn answer(&self, request: &Request) -> Result<Response> {
        let route = Route::parse(&request.url, &self.switches.base_paths).ok_or_else(|| {
            let message = "no such URL: known are /completions, /models and /models/{id} \
                           under the base paths";
            fault_without_param(RequestFault::UnknownUrl, message)
        })?;
        if request.method == "OPTIONS" {
            return Ok(Response::preflight(request));
        }
        if request.method != route.method() {
            let method: String = request.method.chars().take(16).collect();
            let message = format!("{method} is not allowed here: use {}", route.allow());
            let error = fault_without_param(RequestFault::MethodNotAllowed, message);
            let mut response = Response::failure(&Failure::from(&error));
            response.push_header("allow", route.allow());
            return Ok(response);
        }
        auth::check(request, self.switches.api_key.as_deref())?;
        match route {
            Route::Models => Ok(Response::json(200, self.models.list())),
            Route::Model(id) => {
                let card = self.models.get(&id, &self.switches)?;
                Ok(Response::json(200, card))
            }
            Route::Completions => {
                self.check_body_form(request)?;
                completions::complete(self, &request.body).await
            }
        }
    }

    fn check_body_form(&self, request: &Request) -> Result<()> {
        if !request.has_json_content_type() {
            return Err(fault_without_param(
                RequestFault::UnsupportedMediaType,
                "the content type must be application/json",
            ));
        }
        let max_body_bytes = self.switches.max_body_bytes;
        if request.body.len() > max_body_bytes {
            return Err(fault_without_param(
                RequestFault::RequestTooLarge,
                format!(
                    "the body has {} bytes, more than {max_body_bytes}",
                    request.body.len()
                ),
            ));
        }
        Ok(())
    }

    fn warn_unknown(&self, name: &str) {
        let mut warned = self.warned.borrow_mut();
        if warned.len() < MAX_WARNED_NAMES && !warned.contains(name) {
            warned.insert(name.to_owned());
            let shown: String = name.chars().take(64).collect();
            self.host.warn(&format!(
                "inpage: the request field \"{shown}\" is unknown and ignored"
            ));
        }
    }
}
