//! HTTP/1.1 around the endpoint: bytes in, bytes out.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;
use futures_util::StreamExt;
use http_body_util::{Either, Full, StreamBody};
use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use inpage::api::{Body, Failure, Request, Response};
use inpage::runtime::ServedHandler;
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use crate::access::Access;
use crate::body::{BodyBudget, BodyFault, discard};
use crate::limits::Limits;
use crate::timed_stream::TimedStream;

/// No frame of a body has more bytes: hyper reads at most about 400 kB at a time.
const MAX_FRAME_BYTES: usize = 1 << 20;

type Pieces = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>>>>;
type Answer = hyper::Response<Either<Full<Bytes>, StreamBody<Pieces>>>;

/// Answers requests on all connections, forever.
pub async fn accept(
    listener: TcpListener,
    handler: Rc<ServedHandler>,
    access: Rc<Access>,
    limits: Rc<Limits>,
) {
    let bodies = limits.all_bodies_bytes;
    let bodies = BodyBudget::new(bodies.max(handler.switches().max_body_bytes + MAX_FRAME_BYTES));
    // Each connection holds a reference.
    let open = Rc::new(());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Most likely out of file descriptors; connections have to close first.
                eprintln!("cannot accept a connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        if Rc::strong_count(&open) > limits.connections {
            continue;
        }
        // Events are small, and each should be sent immediately.
        let _ = stream.set_nodelay(true);
        let stream = TimedStream::new(stream, limits.write);
        let (handler, access, open) = (Rc::clone(&handler), Rc::clone(&access), Rc::clone(&open));
        let (limits, bodies) = (Rc::clone(&limits), bodies.clone());
        spawn_local(async move {
            let service =
                service_fn(|request| answer(&handler, &access, &limits, &bodies, request));
            // An error here means that the client left or was too slow. Its requests are dropped, which cancels them.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(open);
        });
    }
}

async fn answer(
    handler: &ServedHandler,
    access: &Access,
    limits: &Limits,
    bodies: &BodyBudget,
    request: hyper::Request<Incoming>,
) -> Result<Answer, hyper::Error> {
    let (head, mut body) = request.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.to_string(), value.into_owned())
    });
    let mut request = Request {
        method: head.method.to_string(),
        url: head.uri.to_string(),
        headers: headers.collect(),
        ..Request::default()
    };
    if let Some(reason) = access.refusal(&head.headers) {
        discard(body).await;
        return Ok(without_cors(handler.refuse(&request, &refused(reason))));
    }
    let stated_bytes = body.size_hint().lower();
    if let Some(response) = handler.answer_before_body(&request, stated_bytes) {
        discard(body).await;
        return Ok(to_hyper(response));
    }
    let max_bytes = handler.switches().max_body_bytes;
    let (bytes, _held) = match bodies.read(&mut body, max_bytes, limits.body).await {
        Ok(body) => body.into_parts(),
        Err(BodyFault::Broken(error)) => return Err(error),
        Err(BodyFault::Late) => {
            let mut answer = to_hyper(handler.refuse(&request, &late()));
            // The rest of the body is not read.
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
            return Ok(answer);
        }
        Err(BodyFault::NoRoom) => {
            discard(body).await;
            return Ok(to_hyper(handler.refuse(&request, &no_room())));
        }
    };
    request.body = bytes;
    Ok(to_hyper(handler.handle(request).await))
}

fn to_hyper(response: Response) -> Answer {
    let body = match response.body {
        Body::Full(bytes) => Either::Left(Full::from(bytes)),
        Body::Stream(stream) => {
            let frames = stream.map(|bytes| Ok(Frame::data(Bytes::from(bytes))));
            Either::Right(StreamBody::new(Box::pin(frames) as Pieces))
        }
    };
    let mut answer = hyper::Response::new(body);
    *answer.status_mut() =
        StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &response.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value.parse()) {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

/// An answer without CORS headers, which the page that sent the request cannot read.
fn without_cors(mut response: Response) -> Answer {
    let is_cors = |name: &str| name.starts_with("access-control-");
    response.headers.retain(|(name, _)| !is_cors(name));
    to_hyper(response)
}

fn refused(reason: String) -> Failure {
    failure(403, "origin_not_allowed", reason)
}

/// A body that did not arrive in time.
fn late() -> Failure {
    let reason = "the body of the request did not arrive in time";
    failure(408, "request_timeout", reason.to_owned())
}

fn no_room() -> Failure {
    let reason = "the bodies of other requests take all memory that this server has for them";
    Failure {
        kind: "server_error",
        retry_after_s: Some(1),
        ..failure(503, "server_busy", reason.to_owned())
    }
}

/// An error of the server, which the endpoint does not know.
fn failure(status: u16, code: &'static str, message: String) -> Failure {
    Failure {
        status,
        kind: "invalid_request_error",
        code,
        param: None,
        message,
        retry_after_s: None,
        fails_again: false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::{Duration, Instant};

    use inpage::api::{Switches, SystemHost};
    use tokio::task::LocalSet;

    use super::*;

    /// Longer than any limit of these tests, even on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    fn limits() -> Limits {
        Limits {
            head: LONG,
            body: LONG,
            write: LONG,
            ..Limits::default()
        }
    }

    /// Runs a client on a thread of its own, beside a server without a model.
    fn serve<T: Send + 'static>(
        limits: Limits,
        switches: &str,
        client: impl FnOnce(SocketAddr) -> T + Send + 'static,
    ) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let switches = Switches::from_json(switches).unwrap();
        LocalSet::new().block_on(&runtime, async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            let handler = Rc::new(ServedHandler::new(switches, Rc::new(SystemHost)));
            let server = accept(listener, handler, Rc::default(), Rc::new(limits));
            spawn_local(server);
            let client = tokio::task::spawn_blocking(move || client(address));
            client.await.unwrap()
        })
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    /// The bytes that arrive until the server closes the connection.
    fn read_to_end(mut stream: TcpStream) -> String {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => String::from_utf8(bytes).unwrap(),
        }
    }

    fn post(members: &str) -> String {
        format!(
            "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\n{members}\r\n"
        )
    }

    #[test]
    fn a_head_that_does_not_end_closes_the_connection() {
        let limits = Limits {
            head: Duration::from_millis(200),
            ..limits()
        };
        let ended = serve(limits, "{}", |address| {
            let mut stream = connect(address);
            stream.write_all(b"GET /v1/models HTTP/1.1\r\n").unwrap();
            read_to_end(stream)
        });
        assert!(!ended.contains("200 OK"), "{ended}");
    }

    #[test]
    fn a_body_that_does_not_arrive_is_answered_with_408() {
        let limits = Limits {
            body: Duration::from_millis(200),
            ..limits()
        };
        let answer = serve(limits, "{}", |address| {
            let mut stream = connect(address);
            let head = post("content-length: 100\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(b"{").unwrap();
            read_to_end(stream)
        });
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("request_timeout"), "{answer}");
    }

    #[test]
    fn a_client_that_takes_no_bytes_is_disconnected() {
        let limits = Limits {
            write: Duration::from_millis(500),
            ..limits()
        };
        serve(limits, "{}", |address| {
            let mut stream = connect(address);
            let requests = "GET /v1/none HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1000);
            let began = Instant::now();
            // Answers are not read. Once they fill all buffers, the server reads no further request and closes.
            let error = loop {
                if let Err(error) = stream.write_all(requests.as_bytes()) {
                    break error;
                }
            };
            let reasons = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
            assert!(reasons.contains(&error.kind()), "{error}");
            assert!(began.elapsed() < LONG);
        });
    }

    #[test]
    fn a_head_that_is_refused_is_answered_before_its_body() {
        let switches = r#"{"apiKey":"k1","maxBodyBytes":1000000}"#;
        let key = "authorization: Bearer k1\r\n";
        for (head, status) in [
            (post("content-length: 900000\r\n"), "401"),
            (post(&format!("{key}content-length: 9000000\r\n")), "413"),
            (
                post(&format!("{key}content-length: 900000\r\n")).replace("/json", "/xml"),
                "415",
            ),
            (
                post("content-length: 900000\r\n").replace("POST", "PUT"),
                "405",
            ),
        ] {
            let answer = serve(limits(), switches, move |address| {
                let mut stream = connect(address);
                stream.write_all(head.as_bytes()).unwrap();
                // The body never comes, nor does the client end it.
                let mut answer = [0; 12];
                stream.read_exact(&mut answer).unwrap();
                String::from_utf8(answer.to_vec()).unwrap()
            });
            assert_eq!(answer, format!("HTTP/1.1 {status}"));
        }
    }

    /// SDKs of Anthropic's API read the kind of an error from its body.
    #[test]
    fn every_refusal_below_messages_has_the_form_of_anthropic() {
        let limits = Limits {
            body: Duration::from_millis(200),
            all_bodies_bytes: 0,
            ..limits()
        };
        let switches = r#"{"apiKey":"k1","maxBodyBytes":1000000}"#;
        let key = "x-api-key: k1\r\n";
        let post = |path: &str, members: &str| {
            post(&format!("connection: close\r\n{members}")).replace("/completions", path)
        };
        for (request, status, kind) in [
            (post("/messages", ""), 401, "authentication_error"),
            (
                post("/messages", &format!("{key}content-length: 9000000\r\n")),
                413,
                "request_too_large",
            ),
            (
                post("/messages", &format!("{key}content-length: 1\r\n")) + "{",
                400,
                "invalid_request_error",
            ),
            // The body never comes.
            (
                post("/messages", &format!("{key}content-length: 9\r\n")),
                408,
                "timeout_error",
            ),
            (
                post("/messages", key).replace("POST", "DELETE"),
                405,
                "invalid_request_error",
            ),
            (post("/messages/batches", key), 404, "not_found_error"),
            (
                post("/messages/count_tokens", "origin: https://evil.example\r\n"),
                403,
                "permission_error",
            ),
        ] {
            let sent = request.clone();
            let answer = serve(limits.clone(), switches, move |address| {
                let mut stream = connect(address);
                stream.write_all(sent.as_bytes()).unwrap();
                read_to_end(stream)
            });
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["type"], "error", "{request}{body}");
            assert_eq!(body["error"]["type"], kind, "{request}{body}");
            assert!(!body["error"]["message"].as_str().unwrap().is_empty());
            let id = body["request_id"].as_str().unwrap();
            assert!(head.contains(&format!("\r\nrequest-id: {id}")), "{head}");
            assert_eq!(head.contains("access-control-"), status != 403, "{head}");
        }
    }

    #[test]
    fn bodies_share_a_budget_and_return_what_they_took() {
        let limits = Limits {
            all_bodies_bytes: 0,
            ..limits()
        };
        // The budget is the largest body and a frame.
        let body = vec![b' '; 900_000];
        let answers = serve(limits, r#"{"maxBodyBytes":1000000}"#, move |address| {
            let head = post("content-length: 1000000\r\nconnection: close\r\n");
            let send = || {
                let mut stream = connect(address);
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&body).unwrap();
                stream
            };
            let answer_of_whole = || {
                let mut stream = send();
                stream.write_all(&body[..100_000]).unwrap();
                read_to_end(stream)
            };
            let is_refused = |answer: &String| answer.starts_with("HTTP/1.1 503 ");
            let began = Instant::now();
            let mut answers = std::iter::repeat_with(|| {
                assert!(began.elapsed() < LONG);
                // Two bodies that do not end. The third is refused, unless the server reads it before one of these.
                let held = [send(), send()];
                let answer = answer_of_whole();
                drop(held);
                answer
            });
            let refused = answers.find(is_refused).unwrap();
            // It takes a while until the server notices that the clients of the two bodies left.
            let mut answers = std::iter::repeat_with(|| {
                assert!(began.elapsed() < 2 * LONG);
                answer_of_whole()
            });
            let answer = answers.find(|answer| !is_refused(answer)).unwrap();
            (refused, answer)
        });
        assert!(answers.0.contains("server_busy"), "{}", answers.0);
        assert!(answers.1.starts_with("HTTP/1.1 400 "), "{}", answers.1);
    }

    #[test]
    fn connections_beyond_the_limit_are_closed() {
        let limits = Limits {
            connections: 1,
            ..limits()
        };
        let (first, second) = serve(limits, "{}", |address| {
            let request = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n";
            let mut first = connect(address);
            first.write_all(request).unwrap();
            let mut bytes = [0; 12];
            first.read_exact(&mut bytes).unwrap();
            (bytes, read_to_end(connect(address)))
        });
        assert_eq!(&first, b"HTTP/1.1 200");
        assert_eq!(second, "");
    }
}
