//! The routes below the base paths (specification 1.2). Each is declared in its module and listed in [`ROUTES`].

#[cfg(test)]
mod arbitrary;
mod attempt;
mod chat;
mod completions;
mod embeddings;
mod health;
#[cfg(test)]
mod known_fields;
mod messages;
mod models;
mod prompt_listing;
mod rerank;
mod responses;
mod route;
#[cfg(test)]
mod test_requests;
mod timings;
mod token_logprobs;
mod tokens;

use super::error::{ErrorForm, fault_without_param};
use super::http::path_of;
use crate::{Error, RequestFault};
pub(super) use route::Route;

/// All routes. The handler, its errors, the page (`www/src/generated/types.ts`) and `docs/api.md` read this list.
static ROUTES: &[&Route] = &[
    &completions::ROUTE,
    &chat::ROUTE,
    &responses::ROUTE,
    &responses::input_tokens::ROUTE,
    &responses::compact::ROUTE,
    &messages::ROUTE,
    &messages::count_tokens::ROUTE,
    &embeddings::ROUTE,
    &rerank::ROUTE,
    &rerank::RERANKING,
    &tokens::tokenize::ROUTE,
    &tokens::detokenize::ROUTE,
    &tokens::apply_template::ROUTE,
    &models::LIST,
    &models::CARD,
    &health::ROUTE,
];

/// The paths of the routes that read a body, below a base path, for tests of every route.
#[cfg(feature = "test-hooks")]
pub fn paths_with_bodies() -> impl Iterator<Item = &'static str> {
    let routes = ROUTES.iter().filter(|route| route.method == "POST");
    routes.map(|route| route.path)
}

/// Paths without a base path, as other servers have them, and the routes at them. Whether requests to such a URL reach the
/// endpoint is decided by its doors: those of a page send them to the network.
const ROOT_PATHS: [(&str, &str); 7] = [
    ("tokenize", "tokenize"),
    ("detokenize", "detokenize"),
    ("apply-template", "apply-template"),
    ("rerank", "rerank"),
    ("reranking", "reranking"),
    // Cohere's clients ask here, and vLLM answers here.
    ("v2/rerank", "rerank"),
    ("health", "health"),
];

/// The route at `url` (`/path?query` or absolute) and its parameter, decoded.
pub(super) fn find(url: &str, base_paths: &[String]) -> Option<(&'static Route, String)> {
    let path = path_of(url);
    let path = path.strip_suffix('/').unwrap_or(path);
    let at = |path: &str| {
        let mut routes = ROUTES.iter();
        routes.find_map(|route| Some((*route, route.parameter(path)?)))
    };
    let below = |base: &str| {
        let base = base.trim_end_matches('/');
        at(path.strip_prefix(base)?.strip_prefix('/')?)
    };
    let found = base_paths.iter().find_map(|base| below(base));
    found.or_else(|| {
        let path = path.strip_prefix('/')?;
        at(ROOT_PATHS.iter().find(|(root, _)| *root == path)?.1)
    })
}

/// The form of the errors at `url`. Clients of Anthropic's API read theirs below `messages` also where there is no route, such as
/// that of batches.
pub(super) fn error_form(url: &str, base_paths: &[String]) -> ErrorForm {
    let is_of_messages = base_paths.iter().any(|base| {
        let below = path_of(url).strip_prefix(base.trim_end_matches('/'));
        let rest = below.and_then(|rest| rest.strip_prefix("/messages"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if is_of_messages {
        return ErrorForm::Anthropic;
    }
    match find(url, base_paths) {
        Some((route, _)) if [rerank::ROUTE.path, rerank::RERANKING.path].contains(&route.path) => {
            ErrorForm::Rerank
        }
        _ => ErrorForm::OpenAi,
    }
}

/// No route is at `url`.
pub(super) fn unknown_url(url: &str, base_paths: &[String]) -> Error {
    let paths = ROUTES.iter().map(|route| route.shown_path());
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

/// A route, as TypeScript knows it.
#[cfg(test)]
#[derive(serde::Serialize, ts_rs::TS)]
struct EndpointRoute {
    /// Below a base path. If it ends with a slash, the rest of the URL's path is the parameter.
    path: &'static str,
    #[ts(type = "\"GET\" | \"POST\"")]
    method: &'static str,
    /// The capability that a model needs, so that the name `default` means it. Null: the route answers without a model.
    capability: Option<super::models::Purpose>,
    /// The requests that another server may answer instead.
    upstream: route::Upstream,
}

/// The list of routes for TypeScript.
#[cfg(test)]
pub(super) fn constant() -> crate::typescript::Constant {
    let routes = ROUTES.iter().map(|route| EndpointRoute {
        path: route.path,
        method: route.method,
        capability: route.purpose,
        upstream: route.upstream,
    });
    crate::typescript::Constant {
        docs: "The routes below a base path.",
        name: "ROUTES",
        declared_type: "readonly EndpointRoute[]",
        value: serde_json::to_value(routes.collect::<Vec<_>>()).unwrap(),
    }
}

/// The paths without a base path for TypeScript.
#[cfg(test)]
pub(super) fn root_paths_constant() -> crate::typescript::Constant {
    crate::typescript::Constant {
        docs: "Paths without a base path that a server answers, and the routes at them; a page leaves these paths to the network.",
        name: "ROOT_PATHS",
        declared_type: "Readonly<Record<string, string>>",
        value: ROOT_PATHS
            .map(|(path, route)| (path.to_owned(), route.into()))
            .into_iter()
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// The table of routes in `docs/api.md`.
#[cfg(test)]
pub(super) fn table() -> String {
    let rows = ROUTES.iter().map(|route| {
        let path = route.shown_path();
        format!(
            "| `{} {{base}}{path}` | {} |\n",
            route.method, route.response
        )
    });
    format!(
        "| request | response |\n|---|---|\n{}",
        rows.collect::<String>()
    )
}

/// The tables of the fields in `groups`, by the routes that have them.
#[cfg(test)]
pub(super) fn field_tables(groups: &[&str]) -> String {
    let mut tables = String::new();
    let mut earlier = String::new();
    for group in groups {
        let on = ROUTES.iter().filter_map(|route| {
            let listed = (route.fields)().into_iter().find(|it| it.name == *group)?;
            Some((format!("`{}`", route.shown_path()), listed))
        });
        let (routes, mut listed): (Vec<_>, Vec<_>) = on.unzip();
        let listed = listed.pop();
        let listed = listed.unwrap_or_else(|| panic!("no route has the fields {group}"));
        let routes = routes.join(", ");
        if routes != earlier {
            tables.push_str(if earlier.is_empty() { "" } else { "\n" });
            tables.push_str(&format!("{routes}:\n\n"));
            tables.push_str("| field | type | default | range | meaning | vendors |\n");
            tables.push_str("|---|---|---|---|---|---|\n");
            earlier = routes;
        }
        tables.extend(listed.members.iter().map(|member| member.row()));
    }
    tables
}

/// The names of all groups of fields.
#[cfg(test)]
pub(super) fn field_groups() -> std::collections::BTreeSet<&'static str> {
    let groups = ROUTES.iter().flat_map(|route| (route.fields)());
    groups.map(|group| group.name).collect()
}

/// Visits the types of all requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<EndpointRoute>();
    chat::visit_types(visitor);
    completions::visit_types(visitor);
    embeddings::visit_types(visitor);
    health::visit_types(visitor);
    messages::visit_types(visitor);
    models::visit_types(visitor);
    rerank::visit_types(visitor);
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
            "/completions",
            "/models",
            "/health/x",
        ] {
            assert_eq!(parse(url), None, "{url}");
        }
    }

    /// `inpage serve` answers them: its list is generated from this one.
    #[test]
    fn some_routes_need_no_base_path() {
        for (path, route) in ROOT_PATHS {
            let found = Some((route, String::new()));
            assert_eq!(parse(&format!("/{path}")), found);
            assert_eq!(parse(&format!("https://a.example/{path}/?x")), found);
            assert_eq!(parse(&format!("/v1/{route}")), found);
        }
        assert_eq!(parse("/v2/tokenize"), None);
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
    fn the_form_of_errors_depends_on_the_url() {
        let bases = ["/v1".to_owned(), "/openai/v1/".to_owned()];
        for (url, form) in [
            ("/v1/messages", ErrorForm::Anthropic),
            ("/v1/messages/?beta=true", ErrorForm::Anthropic),
            ("/openai/v1/messages/batches/x", ErrorForm::Anthropic),
            ("https://a.example/v1/messages", ErrorForm::Anthropic),
            ("/v1/models/messages", ErrorForm::OpenAi),
            ("/v1/threads/t/messages", ErrorForm::OpenAi),
            ("/v1/messagesx", ErrorForm::OpenAi),
            ("/messages", ErrorForm::OpenAi),
            ("/v1/chat/completions?x=/v1/messages", ErrorForm::OpenAi),
            ("/v1/rerank", ErrorForm::Rerank),
            ("/openai/v1/reranking/?x=1", ErrorForm::Rerank),
            ("/v2/rerank", ErrorForm::Rerank),
            ("/v1/reranks", ErrorForm::OpenAi),
            ("/v1/models/rerank", ErrorForm::OpenAi),
        ] {
            assert_eq!(error_form(url, &bases), form, "{url}");
        }
    }

    #[test]
    fn a_bare_base_path() {
        let root = ["/".to_owned()];
        let (route, _) = find("/completions", &root).unwrap();
        assert_eq!(route.path, "completions");
    }
}
