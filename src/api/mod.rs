//! JSON <-> validated request, the error catalogue, SSE framing.

mod auth;
mod error;
mod host;
mod http;
mod random_id;
mod request;
mod response;
mod route;
mod sse;
mod switches;
