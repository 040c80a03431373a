//! HTTP/1.1 around the endpoint: bytes in, bytes out. What a request means is the endpoint's.

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
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use crate::load::Endpoint;

type Pieces = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>>>>;
type Answer = hyper::Response<Either<Full<Bytes>, StreamBody<Pieces>>>;

/// Answers whoever connects, for ever.
pub async fn accept(listener: TcpListener, endpoint: Rc<Endpoint>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: others have to close theirs first.
                eprintln!("cannot accept a connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        // Events are small, and each should leave at once.
        let _ = stream.set_nodelay(true);
        let endpoint = Rc::clone(&endpoint);
        spawn_local(async move {
            let service = service_fn(|request| answer(&endpoint, request));
            // An error here is a client that left. What it asked for is dropped, and so cancelled.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    endpoint: &Endpoint,
    request: hyper::Request<Incoming>,
) -> Result<Answer, hyper::Error> {
    let (head, body) = request.into_parts();
    let handler = endpoint.handler();
    let body = read(body, handler.switches().max_body_bytes).await?;
    #[cfg(feature = "test-hooks")]
    if head.uri.path() == "/_hooks" {
        return Ok(obey(endpoint, &body));
    }
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

/// The body, or a little more than `max_bytes` of it: the endpoint refuses what is longer.
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

#[cfg(feature = "test-hooks")]
fn obey(endpoint: &Endpoint, command: &[u8]) -> Answer {
    let outcome = endpoint.hooks.command(&String::from_utf8_lossy(command));
    let (status, text) = match outcome {
        Ok(json) => (hyper::StatusCode::OK, json),
        Err(error) => (hyper::StatusCode::BAD_REQUEST, error.to_string()),
    };
    let mut answer = hyper::Response::new(Either::Left(Full::from(text)));
    *answer.status_mut() = status;
    answer
}
