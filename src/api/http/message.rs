//! Requests, responses and the headers of specification 1.3 to 1.5.

use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;

use super::attachment::Attachment;
use crate::api::error::{ErrorForm, Failure};
use crate::api::progress::Progress;

/// One HTTP request, its body read completely.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The method in upper case.
    pub method: String,
    /// `/path?query`, or an absolute URL.
    pub url: String,
    /// Names in any case, values as received.
    pub headers: Vec<(String, String)>,
    /// The raw bytes.
    pub body: Vec<u8>,
    /// The position after which an earlier run's stream is continued ([`Progress::position`]).
    pub position: Option<String>,
    /// Images that the body names.
    pub attachments: Vec<Attachment>,
}

impl Request {
    /// The first header called `name` (any case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether the content type is `application/json` or `application/*+json`, parameters ignored.
    pub(in crate::api) fn has_json_content_type(&self) -> bool {
        let value = self.header("content-type").unwrap_or_default();
        let media_type = value.split(';').next().unwrap_or_default().trim();
        let media_type = media_type.to_ascii_lowercase();
        match media_type.strip_prefix("application/") {
            Some("json") => true,
            Some(subtype) => subtype.len() > "+json".len() && subtype.ends_with("+json"),
            None => false,
        }
    }
}

/// One HTTP response.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Lower-case names.
    pub headers: Vec<(String, String)>,
    /// The bytes, or the stream that will yield them.
    pub body: Body,
    /// The part of the body that was taken, and whether the answer is a failure.
    pub progress: Rc<Progress>,
    /// The error that the body reports, if it is one.
    pub failure: Option<Box<Failure>>,
}

/// The bytes of a response.
pub enum Body {
    /// All headers.
    Full(Vec<u8>),
    /// Chunks as they become ready; dropping the stream cancels what produces them.
    Stream(Pin<Box<dyn Stream<Item = Vec<u8>>>>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Body::Full(bytes) => write!(f, "Full({:?})", String::from_utf8_lossy(bytes)),
            Body::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Response {
    /// A JSON body.
    pub(in crate::api) fn json(status: u16, body: Vec<u8>) -> Response {
        let mut response = Response {
            status,
            headers: Vec::new(),
            body: Body::Full(body),
            progress: Rc::default(),
            failure: None,
        };
        response.push_header("content-type", "application/json; charset=utf-8");
        response.push_header("cache-control", "no-store");
        response
    }

    /// A stream of server-sent events.
    pub(in crate::api) fn events(
        events: Pin<Box<dyn Stream<Item = Vec<u8>>>>,
        progress: Rc<Progress>,
    ) -> Response {
        let mut response = Response {
            status: 200,
            headers: Vec::new(),
            body: Body::Stream(events),
            progress,
            failure: None,
        };
        response.push_header("content-type", "text/event-stream; charset=utf-8");
        response.push_header("cache-control", "no-cache");
        response
    }

    /// The answer to a CORS preflight: allows what `request` asks for.
    pub(in crate::api) fn preflight(request: &Request) -> Response {
        let mut response = Response {
            status: 204,
            headers: Vec::new(),
            body: Body::Full(Vec::new()),
            progress: Rc::default(),
            failure: None,
        };
        response.push_header("cache-control", "no-store");
        response.push_header("access-control-allow-methods", "GET, POST, OPTIONS");
        response.push_header("access-control-max-age", "86400");
        // Echoed rather than `*`: the wildcard does not cover Authorization, and SDKs send
        // headers that no fixed list foresees.
        if let Some(requested) = request.header("access-control-request-headers") {
            response.push_header("access-control-allow-headers", requested);
        }
        response
    }

    /// An error object with its status and retry headers.
    pub(in crate::api) fn failure(failure: &Failure) -> Response {
        let mut response = Response::json(failure.status, failure.body());
        response.failure = Some(Box::new(failure.clone()));
        if let Some(seconds) = failure.retry_after_s {
            response.push_header("retry-after", &seconds.to_string());
        }
        if failure.fails_again {
            response.push_header("x-should-retry", "false");
        }
        response
    }

    pub(in crate::api) fn push_header(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// The first header called `name` (any case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Adds what every response carries: the request id and the CORS headers. An error is written in the route's form.
    pub(in crate::api) fn finish(
        mut self,
        request_id: &str,
        allow_origin: &str,
        form: ErrorForm,
    ) -> Response {
        self.push_header("x-request-id", request_id);
        if form == ErrorForm::Anthropic {
            self.push_header("request-id", request_id);
        }
        if let Some(failure) = &self.failure {
            match form {
                ErrorForm::OpenAi => {}
                ErrorForm::Anthropic => {
                    self.body = Body::Full(failure.anthropic_body(Some(request_id)));
                }
                ErrorForm::Rerank => self.body = Body::Full(failure.rerank_body()),
            }
        }
        self.push_header("access-control-allow-origin", allow_origin);
        if allow_origin != "*" {
            self.push_header("vary", "Origin");
        }
        let exposed = match form {
            ErrorForm::OpenAi | ErrorForm::Rerank => "x-request-id, retry-after, x-should-retry",
            ErrorForm::Anthropic => "x-request-id, request-id, retry-after, x-should-retry",
        };
        self.push_header("access-control-expose-headers", exposed);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_content_type(value: &str) -> Request {
        Request {
            headers: vec![("Content-Type".into(), value.into())],
            ..Request::default()
        }
    }

    #[test]
    fn json_content_types() {
        for yes in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.test+json",
            " application/json ;x=y",
        ] {
            assert!(with_content_type(yes).has_json_content_type(), "{yes}");
        }
        for no in [
            "",
            "text/plain;charset=UTF-8",
            "application/x-www-form-urlencoded",
            "application/jsonx",
            "application/+json",
            "text/json",
            "multipart/form-data; a=application/json",
        ] {
            assert!(!with_content_type(no).has_json_content_type(), "{no}");
        }
        assert!(!Request::default().has_json_content_type());
    }

    #[test]
    fn other_origins_vary() {
        let response = Response::json(200, Vec::new());
        let response = response.finish("req_x", "https://a.example", ErrorForm::OpenAi);
        assert_eq!(response.header("vary"), Some("Origin"));
        assert_eq!(
            response.header("Access-Control-Allow-Origin"),
            Some("https://a.example")
        );
    }
}
