//! The routes below the base paths (specification 1.2). Each is a line in [`ROUTES`] and a module that
//! answers.

mod chat;
mod completions;
mod embeddings;
mod models;
mod responses;
mod token_logprobs;
mod tokens;

use std::future::Future;
use std::pin::Pin;

use super::endpoint::Endpoint;
use super::error::fault_without_param;
use super::http::{Request, Response, path_of, percent_decode};
use crate::{Error, RequestFault, Result};

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response>> + 'a>>;

/// One resource.
pub(super) struct Route {
    /// Below a base path. If it ends with a slash, the rest of the URL's path is the parameter.
    path: &'static str,
    /// The only method besides `OPTIONS`. The body of a `POST` was checked to be JSON of a legal size.
    pub method: &'static str,
    /// Answers a request with the parameter, which is empty if the path takes none.
    pub answer: for<'a> fn(&'a Endpoint, &'a Request, String) -> Answer<'a>,
}

static ROUTES: [Route; 9] = [
    Route {
        path: "completions",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(completions::answer(endpoint, request)),
    },
    Route {
        path: "chat/completions",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(chat::answer(endpoint, request)),
    },
    Route {
        path: "responses",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(responses::answer(endpoint, request)),
    },
    Route {
        path: "embeddings",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(embeddings::answer(endpoint, request)),
    },
    Route {
        path: "tokenize",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(tokens::tokenize::answer(endpoint, request)),
    },
    Route {
        path: "detokenize",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(tokens::detokenize::answer(endpoint, request)),
    },
    Route {
        path: "apply-template",
        method: "POST",
        answer: |endpoint, request, _| Box::pin(tokens::apply_template::answer(endpoint, request)),
    },
    Route {
        path: "models",
        method: "GET",
        answer: |endpoint, _, _| Box::pin(async { Ok(models::list(endpoint)) }),
    },
    Route {
        path: "models/",
        method: "GET",
        answer: |endpoint, _, id| Box::pin(async move { models::card(endpoint, &id) }),
    },
];

impl Route {
    /// The value of the `Allow` header.
    pub(super) fn allow(&self) -> String {
        format!("{}, OPTIONS", self.method)
    }

    /// The parameter of `path`, if it is a path of this route.
    fn parameter(&self, path: &str) -> Option<String> {
        if !self.path.ends_with('/') {
            return (path == self.path).then(String::new);
        }
        let parameter = path.strip_prefix(self.path)?;
        (!parameter.is_empty()).then(|| percent_decode(parameter))
    }
}

/// The route at `url` (`/path?query` or absolute) and its parameter, decoded.
pub(super) fn find(url: &str, base_paths: &[String]) -> Option<(&'static Route, String)> {
    let path = path_of(url);
    let path = path.strip_suffix('/').unwrap_or(path);
    base_paths.iter().find_map(|base| {
        let base = base.trim_end_matches('/');
        let path = path.strip_prefix(base)?.strip_prefix('/')?;
        let mut routes = ROUTES.iter();
        routes.find_map(|route| Some((route, route.parameter(path)?)))
    })
}

/// No route is at `url`.
pub(super) fn unknown_url(url: &str, base_paths: &[String]) -> Error {
    let paths = ROUTES.iter().map(|route| match route.path.ends_with('/') {
        true => format!("/{}{{id}}", route.path),
        false => format!("/{}", route.path),
    });
    let paths = paths.collect::<Vec<_>>().join(", ");
    let message = match below_base(path_of(url), base_paths) {
        Some(route) => format!("the route {route} is not supported; these are: {paths}"),
        None => {
            let bases = base_paths.join(", ");
            format!("no such URL: a base path ({bases}) is followed by one of {paths}")
        }
    };
    fault_without_param(RequestFault::UnknownUrl, message)
}

/// The part of `path` below a base path, with its slash and shortened for a message.
fn below_base(path: &str, base_paths: &[String]) -> Option<String> {
    const MAX_CHARS: usize = 80;
    base_paths.iter().find_map(|base| {
        let rest = path.strip_prefix(base.trim_end_matches('/'))?;
        let is_below = rest.len() > 1 && rest.starts_with('/');
        is_below.then(|| match rest.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}...", &rest[..end]),
            None => rest.to_owned(),
        })
    })
}

/// Visits the types of all requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    chat::visit_types(visitor);
    completions::visit_types(visitor);
    embeddings::visit_types(visitor);
    models::visit_types(visitor);
    responses::visit_types(visitor);
    tokens::visit_types(visitor);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Path and parameter of the route at `url`.
    fn parse(url: &str) -> Option<(&'static str, String)> {
        let found = find(url, &["/v1".into(), "/openai/v1/".into()]);
        found.map(|(route, parameter)| (route.path, parameter))
    }

    fn completions() -> Option<(&'static str, String)> {
        Some(("completions", String::new()))
    }

    fn model(id: &str) -> Option<(&'static str, String)> {
        Some(("models/", id.to_owned()))
    }

    #[test]
    fn known_paths() {
        for url in [
            "/v1/completions",
            "/v1/completions/",
            "/v1/completions/?trace=1",
            "/openai/v1/completions#x",
            "https://page.example:8080/v1/completions?u=http://a/b",
        ] {
            assert_eq!(parse(url), completions(), "{url}");
        }
        for url in ["/v1/chat/completions", "/openai/v1/chat/completions/?a=b"] {
            assert_eq!(parse(url), Some(("chat/completions", String::new())));
        }
        for url in ["/v1/models", "/v1/models/"] {
            assert_eq!(parse(url), Some(("models", String::new())));
        }
        for url in ["/v1/models/org%2Fname", "/v1/models/org/name"] {
            assert_eq!(parse(url), model("org/name"), "{url}");
        }
    }

    #[test]
    fn ids_are_decoded_once() {
        assert_eq!(parse("/v1/models/a%252Fb"), model("a%2Fb"));
        assert_eq!(parse("/v1/models/%zz%4"), model("%zz%4"));
        assert_eq!(parse("/v1/models/%ff"), model("\u{fffd}"));
        assert_eq!(parse("/v1/models/é%"), model("é%"));
    }

    #[test]
    fn everything_else_is_unknown() {
        for url in [
            "",
            "/",
            "/v1",
            "/v1/",
            "/v1/nonsense",
            "/v1/completions//",
            "/v1/completionsx",
            "/v1completions",
            "/v1/chat",
            "/v1/chat/completions/x",
            "/v2/completions",
            "/a?x=/v1/completions",
            "https://page.example",
            "/v1/models//",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }

    /// The service worker intercepts these and nothing else.
    #[test]
    fn the_service_worker_knows_the_routes() {
        let script = include_str!("../../../www/src/exchange/base_paths.ts");
        let script: String = script.split_whitespace().collect();
        let paths = ROUTES.iter().map(|route| format!("{:?},", route.path));
        let declaration = format!("constROUTE_PATHS=[{}];", paths.collect::<String>());
        assert!(script.contains(&declaration), "expected: {declaration}");
    }

    /// The page intercepts the base paths of its profile.
    #[test]
    fn the_page_knows_the_base_paths_of_profiles() {
        let script = include_str!("../../../www/src/exchange/base_paths.ts");
        let switches = |name| crate::api::Switches::profile(name).unwrap();
        let declaration = format!(
            "export const DEFAULT_BASE_PATHS: readonly string[] = {:?};",
            switches("default").base_paths
        );
        assert!(script.contains(&declaration), "expected: {declaration}");
        let declaration = format!("  fireworks: {:?},", switches("fireworks").base_paths);
        assert!(script.contains(&declaration), "expected: {declaration}");
    }

    #[test]
    fn refusals_name_the_route_and_those_that_there_are() {
        let bases = ["/v1".to_owned(), "/openai/v1/".to_owned()];
        let message = |url: &str| unknown_url(url, &bases).to_string();
        for url in [
            "/v1/audio/speech",
            "https://a.example/openai/v1/audio/speech?x=1",
        ] {
            let message = message(url);
            let start = "the route /audio/speech is not supported; these are: /completions, ";
            assert!(message.contains(start), "{message}");
            assert!(message.contains("/models/{id}"), "{message}");
        }
        assert!(message("/v1").contains("a base path (/v1, /openai/v1/) is followed by"));
        let long = message(&format!("/v1/{}", "é".repeat(500)));
        let shortened = format!("/{}... is not", "é".repeat(79));
        assert!(long.contains(&shortened), "{long}");
    }

    #[test]
    fn a_bare_base_path() {
        let root = ["/".to_owned()];
        let (route, _) = find("/completions", &root).unwrap();
        assert_eq!(route.path, "completions");
    }
}
