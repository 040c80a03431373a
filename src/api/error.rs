//! The error catalogue of specification 2.2: the only place where a [`crate::Error`] becomes a status,
//! a type, a code and a parameter.

use serde::Serialize;

use super::json::to_json;
use crate::{Error, RequestFault};

/// An error as the client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// `error.type`.
    pub kind: &'static str,
    /// `error.code`.
    pub code: &'static str,
    /// `error.param`.
    pub param: Option<String>,
    /// `error.message`, never empty.
    pub message: String,
    /// `Retry-After` in seconds, for statuses 429 and 503.
    pub retry_after_s: Option<u32>,
    /// Sends `x-should-retry: false`: the SDK would otherwise retry a request that must fail again.
    pub fails_again: bool,
}

const INVALID_REQUEST: &str = "invalid_request_error";
const RATE_LIMIT: &str = "rate_limit_error";
const SERVER: &str = "server_error";

/// One row of the catalogue: status, type, code, `Retry-After`, fails again.
type Row = (u16, &'static str, &'static str, Option<u32>, bool);

fn request_row(fault: RequestFault) -> Row {
    use RequestFault as F;
    let (status, code) = match fault {
        F::InvalidJson => (400, "invalid_json"),
        F::InvalidBody => (400, "invalid_body"),
        F::MissingRequiredParameter => (400, "missing_required_parameter"),
        F::InvalidType => (400, "invalid_type"),
        F::OutOfRange => (400, "out_of_range"),
        F::InvalidValue => (400, "invalid_value"),
        F::ConflictingParameters => (400, "conflicting_parameters"),
        F::UnsupportedParameter => (400, "unsupported_parameter"),
        F::UnknownParameter => (400, "unknown_parameter"),
        F::InvalidGrammar => (400, "invalid_grammar"),
        F::InvalidSchema => (400, "invalid_schema"),
        F::ContextLengthExceeded => (400, "context_length_exceeded"),
        F::InvalidApiKey => (401, "invalid_api_key"),
        F::ModelNotFound => (404, "model_not_found"),
        F::UnknownUrl => (404, "unknown_url"),
        F::MethodNotAllowed => (405, "method_not_allowed"),
        F::RequestTooLarge => (413, "request_too_large"),
        F::UnsupportedMediaType => (415, "unsupported_media_type"),
        F::ModelLoading { retry_after_s } => {
            let retry_after_s = retry_after_s.clamp(1, 60);
            return (503, SERVER, "model_loading", Some(retry_after_s), false);
        }
        // Retrying does not help: the page has to load the model first.
        F::ModelNotLoaded => return (503, SERVER, "model_not_loaded", Some(60), true),
        F::ModelLoadFailed { retry_after_s } => {
            let retry_after_s = retry_after_s.clamp(1, 60);
            return (503, SERVER, "model_not_loaded", Some(retry_after_s), false);
        }
    };
    (status, INVALID_REQUEST, code, None, false)
}

fn row(error: &Error) -> Row {
    match error {
        Error::Request { fault, .. } => request_row(*fault),
        Error::QueueFull { .. } => (429, RATE_LIMIT, "queue_full", Some(1), false),
        Error::OutOfMemory(_) => (500, SERVER, "out_of_memory", None, true),
        Error::DeviceLost(_) => (500, SERVER, "device_lost", None, true),
        Error::InvalidLogits { .. } => (500, SERVER, "invalid_logits", None, true),
        Error::GrammarDeadEnd { .. } => (500, SERVER, "grammar_dead_end", None, true),
        Error::StalledReader => (500, SERVER, "stalled_reader", None, true),
        Error::InvalidModelFile(_)
        | Error::UnsupportedModel(_)
        | Error::Read(_)
        | Error::NoDevice(_)
        | Error::Aborted
        | Error::Internal(_) => (500, SERVER, "internal_error", None, true),
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Failure {
        let (status, kind, code, retry_after_s, fails_again) = row(error);
        let param = match error {
            Error::Request { param, .. } => param.clone(),
            _ => None,
        };
        let message = match error.to_string() {
            text if text.is_empty() => code.to_owned(),
            text => text,
        };
        Failure {
            status,
            kind,
            code,
            param,
            message,
            retry_after_s,
            fails_again,
        }
    }
}

impl Failure {
    /// The failure of an error, but with the status `invalid_request` for a body that is JSON and not a
    /// valid request.
    pub(super) fn with_status(error: &Error, invalid_request: u16) -> Failure {
        let failure = Failure::from(error);
        let is_other = failure.status != 400 || failure.code == "invalid_json";
        Failure {
            status: match is_other {
                true => failure.status,
                false => invalid_request,
            },
            ..failure
        }
    }
}

/// The body of every answer that is an error.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ErrorBody<'a> {
    error: ErrorObject<'a>,
}

/// The fault.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ErrorObject<'a> {
    message: &'a str,
    /// The kind of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    kind: &'a str,
    /// The field that is wrong, if it is one.
    param: Option<&'a str>,
    code: &'a str,
}

/// The body of an error of the routes of messages.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "MessageError"))]
pub(super) struct AnthropicErrorBody<'a> {
    #[serde(rename = "type")]
    #[cfg_attr(test, ts(type = "\"error\""))]
    kind: &'static str,
    /// Its `type` is one of Anthropic's.
    error: ErrorObject<'a>,
    /// Null in the event of a stream.
    request_id: Option<&'a str>,
}

/// The body of an error of the routes that rerank, with the message where the clients of these APIs read it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "RerankError"))]
pub(super) struct RerankErrorBody<'a> {
    error: ErrorObject<'a>,
    /// The message, for clients of Cohere.
    message: &'a str,
    /// The message, for clients of Jina and Voyage.
    detail: &'a str,
}

/// The form of the body of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorForm {
    OpenAi,
    Anthropic,
    Rerank,
}

/// The type of an error in Anthropic's API.
fn anthropic_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500.. => "api_error",
        _ => INVALID_REQUEST,
    }
}

impl Failure {
    /// The body `{"type":"error","error":{message,type,param,code},"request_id"}`.
    pub(super) fn anthropic_body(&self, request_id: Option<&str>) -> Vec<u8> {
        to_json(&AnthropicErrorBody {
            kind: "error",
            error: ErrorObject {
                kind: anthropic_kind(self.status),
                ..self.object()
            },
            request_id,
        })
    }

    /// The body `{"error":{message,type,param,code},"message","detail"}`.
    pub(super) fn rerank_body(&self) -> Vec<u8> {
        to_json(&RerankErrorBody {
            error: self.object(),
            message: &self.message,
            detail: &self.message,
        })
    }

    /// The body `{"error":{message,type,param,code}}`.
    pub fn body(&self) -> Vec<u8> {
        to_json(&ErrorBody {
            error: self.object(),
        })
    }

    /// The contents of the body.
    pub(super) fn object(&self) -> ErrorObject<'_> {
        ErrorObject {
            message: &self.message,
            kind: self.kind,
            param: self.param.as_deref(),
            code: self.code,
        }
    }
}

/// An error about the field `param`.
pub(super) fn fault(fault: RequestFault, param: &str, message: impl Into<String>) -> Error {
    Error::Request {
        fault,
        param: Some(param.to_owned()),
        message: message.into(),
    }
}

/// The error with the parameter that a route has instead. `names` are the names that the shared code uses, and those of the
/// route. Messages of such errors begin with the name.
pub(super) fn rename_param(error: Error, names: &[(&str, &str)]) -> Error {
    let Error::Request {
        fault,
        param: Some(param),
        message,
    } = error
    else {
        return error;
    };
    let renamed = names.iter().find(|(name, _)| *name == param);
    let Some((name, own)) = renamed else {
        return Error::Request {
            fault,
            param: Some(param),
            message,
        };
    };
    Error::Request {
        fault,
        param: Some((*own).to_owned()),
        message: match message.strip_prefix(name) {
            Some(rest) if rest.starts_with([':', ' ']) => format!("{own}{rest}"),
            _ => message,
        },
    }
}

/// An error about no particular field.
pub(super) fn fault_without_param(fault: RequestFault, message: impl Into<String>) -> Error {
    Error::Request {
        fault,
        param: None,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_has_exactly_four_members() {
        let error = fault(RequestFault::OutOfRange, "temperature", "too \"hot\"");
        let failure = Failure::from(&error);
        assert_eq!(
            String::from_utf8(failure.body()).unwrap(),
            r#"{"error":{"message":"too \"hot\"","type":"invalid_request_error","param":"temperature","code":"out_of_range"}}"#
        );
        let failure = Failure::from(&Error::DeviceLost("gone".into()));
        assert!(
            String::from_utf8(failure.body())
                .unwrap()
                .contains(r#""param":null,"code":"device_lost""#)
        );
    }

    #[test]
    fn types_of_anthropic_follow_the_status() {
        let kind = |error: &Error| {
            let body = Failure::from(error).anthropic_body(Some("req_1"));
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(
                (&body["type"], &body["request_id"]),
                (&"error".into(), &"req_1".into())
            );
            body["error"]["type"].as_str().unwrap().to_owned()
        };
        let request = |fault| kind(&fault_without_param(fault, "x"));
        assert_eq!(request(RequestFault::OutOfRange), "invalid_request_error");
        assert_eq!(
            request(RequestFault::MethodNotAllowed),
            "invalid_request_error"
        );
        assert_eq!(request(RequestFault::InvalidApiKey), "authentication_error");
        assert_eq!(request(RequestFault::ModelNotFound), "not_found_error");
        assert_eq!(request(RequestFault::RequestTooLarge), "request_too_large");
        assert_eq!(request(RequestFault::ModelNotLoaded), "overloaded_error");
        assert_eq!(kind(&Error::QueueFull { max_queue: 1 }), "rate_limit_error");
        assert_eq!(kind(&Error::Internal("x".into())), "api_error");
    }

    #[test]
    fn retry_headers_follow_the_status() {
        let errors = [
            Error::QueueFull { max_queue: 1 },
            Error::OutOfMemory("x".into()),
            Error::InvalidLogits { position: 3 },
            Error::StalledReader,
            Error::Internal("x".into()),
            fault(
                RequestFault::ModelLoading { retry_after_s: 61 },
                "model",
                "x",
            ),
            fault(RequestFault::ModelNotLoaded, "model", "x"),
            fault(
                RequestFault::ModelLoadFailed { retry_after_s: 0 },
                "model",
                "x",
            ),
            fault_without_param(RequestFault::InvalidApiKey, "x"),
        ];
        for error in errors {
            let failure = Failure::from(&error);
            let retries = matches!(failure.status, 429 | 503);
            assert_eq!(failure.retry_after_s.is_some(), retries, "{error}");
            assert!(failure.retry_after_s.unwrap_or(1) <= 60);
            if failure.status == 500 {
                assert!(failure.fails_again, "{error}");
            }
        }
    }

    #[test]
    fn only_the_status_of_invalid_requests_changes() {
        let status = |kind| Failure::with_status(&fault(kind, "x", "y"), 422).status;
        assert_eq!(status(RequestFault::OutOfRange), 422);
        assert_eq!(status(RequestFault::InvalidBody), 422);
        assert_eq!(status(RequestFault::InvalidJson), 400);
        assert_eq!(status(RequestFault::ModelNotFound), 404);
        let error = fault(RequestFault::OutOfRange, "x", "y");
        assert_eq!(Failure::with_status(&error, 400), Failure::from(&error));
    }

    #[test]
    fn message_is_never_empty() {
        let failure = Failure::from(&fault(RequestFault::InvalidType, "x", ""));
        assert_eq!(failure.message, "invalid_type");
    }
}
