//! The declaration of a route. Everything that depends on the set of routes reads these declarations: the handler, the page, the
//! choice of a model, `upstream`, and `docs/api.md`.

use std::future::Future;
use std::pin::Pin;

use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::http::{Request, Response, percent_decode};
use crate::api::models::Purpose;

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response>> + 'a>>;

/// One resource.
pub(in crate::api) struct Route {
    /// Below a base path. If it ends with a slash, the rest of the URL's path is the parameter.
    pub path: &'static str,
    /// The only method besides `OPTIONS`. The body of a `POST` was checked to be JSON of a legal size.
    pub method: &'static str,
    /// The purpose that a model needs, so that the name `default` means it. `None`: the route answers without a model.
    #[cfg_attr(not(test), expect(dead_code, reason = "the page chooses the model"))]
    pub purpose: Option<Purpose>,
    /// The requests that another server may answer instead.
    #[cfg_attr(not(test), expect(dead_code, reason = "the page hands requests over"))]
    pub upstream: Upstream,
    /// Answers a request with the parameter, which is empty if the path takes none.
    pub answer: for<'a> fn(&'a Endpoint, &'a Request, String) -> Answer<'a>,
    /// The response, for the table of routes in `docs/api.md`.
    #[cfg(test)]
    pub response: &'static str,
    /// The fields of the body, for the tables of fields in `docs/api.md`.
    #[cfg(test)]
    pub fields: fn() -> Vec<crate::api::fields::listed::ListedGroup>,
}

/// The requests of a route that the page may hand to the server of the option `upstream`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS, serde::Serialize))]
#[cfg_attr(test, serde(rename_all = "lowercase"))]
pub(in crate::api) enum Upstream {
    /// All: any model may answer.
    Any,
    /// Those that a function of the app chooses: answers of two models cannot be compared.
    Chosen,
    /// None: the answer is about this engine.
    Never,
}

impl Route {
    /// Whether a request needs the key of the switch `apiKey`.
    pub(in crate::api) fn needs_key(&self) -> bool {
        self.path != "health"
    }

    /// The value of the `Allow` header.
    pub(in crate::api) fn allow(&self) -> String {
        format!("{}, OPTIONS", self.method)
    }

    /// The path for people, with its slash and the name of its parameter.
    pub(super) fn shown_path(&self) -> String {
        let parameter = if self.path.ends_with('/') { "{id}" } else { "" };
        format!("/{}{parameter}", self.path)
    }

    /// The parameter of `path`, if it is a path of this route.
    pub(super) fn parameter(&self, path: &str) -> Option<String> {
        if !self.path.ends_with('/') {
            return (path == self.path).then(String::new);
        }
        let parameter = path.strip_prefix(self.path)?;
        (!parameter.is_empty()).then(|| percent_decode(parameter))
    }
}
