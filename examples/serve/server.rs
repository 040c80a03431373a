//! HTTP/1.1 around the endpoint: bytes in, bytes out.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use inpage::api::{Body, Request};
use inpage::runtime::ServedHandler;
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use crate::access::Access;

type Pieces = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>>>>;
type Answer = hyper::Response<Either<Full<Bytes>, StreamBody<Pieces>>>;

/// Answers requests on all connections, forever.
pub async fn accept(listener: TcpListener, handler: Rc<ServedHandler>, access: Rc<Access>) {
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
        // Events are small, and each should be sent immediately.
        let _ = stream.set_nodelay(true);
        let (handler, access) = (Rc::clone(&handler), Rc::clone(&access));
        spawn_local(async move {
            let service = service_fn(|request| answer(&handler, &access, request));
            // An error here means that the client left. Its requests are dropped, which cancels them.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    handler: &ServedHandler,
    access: &Access,
    request: hyper::Request<Incoming>,
) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    if let Some(reason) = access.refusal(&head.headers) {
        return Ok(refused(&reason));
    }
    let body = read(body, handler.switches().max_body_bytes).await?;
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.to_string(), value.into_owned())
    });
    let response = handler
        .handle(Request {
            method: head.method.to_string(),
            url: head.uri.to_string(),
            headers: headers.collect(),
            body,
            ..Request::default()
        })
        .await;
    let body = match response.body {
        Body::Full(bytes) => Either::Left(Full::from(bytes)),
        Body::Stream(stream) => {
            let frames = stream.map(|bytes| Ok(Frame::data(Bytes::from(bytes))));
            Either::Right(StreamBody::new(Box::pin(frames) as Pieces))
        }
    };
    let mut answer = hyper::Response::new(body);
    *answer.status_mut() = hyper::StatusCode::from_u16(response.status)
        .unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &response.headers {
        let name = hyper::header::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value.parse()) {
            answer.headers_mut().append(name, value);
        }
    }
    Ok(answer)
}

/// The response has no CORS headers, so the page that sent the request cannot read it.
fn refused(reason: &str) -> Answer {
    let body = serde_json::json!({ "error": {
        "message": reason,
        "type": "invalid_request_error",
        "param": null,
        "code": "origin_not_allowed",
    } });
    let mut answer = hyper::Response::new(Either::Left(Full::from(body.to_string())));
    *answer.status_mut() = hyper::StatusCode::FORBIDDEN;
    let json = hyper::header::HeaderValue::from_static("application/json; charset=utf-8");
    answer
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, json);
    answer
}

/// Reads the body, or a little more than `max_bytes` of it, because the endpoint refuses longer bodies.
async fn read(mut body: Incoming, max_bytes: usize) -> Result<Vec<u8>, hyper::Error> {
    let mut bytes = Vec::new();
    while bytes.len() <= max_bytes
        && let Some(frame) = body.frame().await
    {
        if let Some(data) = frame?.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}
