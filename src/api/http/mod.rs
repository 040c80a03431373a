//! HTTP without sockets: requests and responses, authorization, URLs and server-sent events (specification
//! 1 and 10). What a route means is not known here.

mod attachment;
mod auth;
mod message;
mod path;
mod sse;

pub use attachment::Attachment;
pub(super) use auth::check_authorization;
pub use message::{Body, Request, Response};
pub(super) use path::{path_of, percent_decode};
pub(super) use sse::{DONE, KeepAlive, event, named_event};
