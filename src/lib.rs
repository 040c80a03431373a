//! inpage: endpoints of OpenAI (completions, chat, responses, embeddings) and Anthropic (messages), and `rerank`, answered inside the web
//! page by a quantized transformer on WebGPU or the CPU. The same code runs natively, on a GPU or on the CPU.
//!
//! [`runtime`] turns options into a running engine, and [`api`] answers HTTP requests with it:
//!
//! ```no_run
//! use std::pin::pin;
//! use std::rc::Rc;
//!
//! use futures_util::future::{Either, select};
//! use inpage::api::{Body, Request, Switches, SystemHost};
//! use inpage::device::ComputeDevice;
//! use inpage::model::LoadOptions;
//! use inpage::runtime::{AdapterFiles, LoadRequest, ServedHandler, load, serve};
//! use inpage::weights::LocalFiles;
//!
//! # async fn example() -> inpage::Result<()> {
//! let adapters: [AdapterFiles<LocalFiles>; 0] = [];
//! let request = LoadRequest {
//!     files: &LocalFiles::at("www/models/tales.gguf")?,
//!     projector: None,
//!     draft_model: None,
//!     adapters: &adapters,
//!     options: LoadOptions::default(),
//!     now_ms: || 0.0,
//! };
//! let device = async { Ok(ComputeDevice::reference()) };
//! let model = load(request, device, |_read_bytes, _total_bytes| ()).await?;
//!
//! let handler = ServedHandler::new(Switches::default(), Rc::new(SystemHost));
//! let served = serve(model, &handler, "tales");
//! let completion = pin!(handler.handle(Request {
//!     method: "POST".into(),
//!     url: "/v1/completions".into(),
//!     headers: vec![("content-type".into(), "application/json".into())],
//!     body: br#"{"model": "default", "prompt": "Once upon a time"}"#.into(),
//!     ..Request::default()
//! }));
//! // Requests are answered while the engine runs.
//! let response = match select(completion, pin!(served.engine.run())).await {
//!     Either::Left((response, _)) => response,
//!     Either::Right((ended, _)) => return ended,
//! };
//! if let Body::Full(bytes) = response.body {
//!     println!("{}", String::from_utf8_lossy(&bytes));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The modules are listed from the request down to the GPU, except that `model` is above `engine`, whose
//! contract it implements. A module uses only modules below it; `ARCHITECTURE.md` in the repository
//! explains them. Comments cite the rules of the endpoint by number: "specification 4.2" is in
//! `docs/specification.md`.
#![cfg_attr(
    test,
    allow(clippy::too_many_lines, reason = "a test may be a long list of cases")
)]

#[cfg(target_arch = "wasm32")]
pub mod web;

#[cfg(feature = "test-hooks")]
pub mod test_hooks;

pub mod runtime;

pub mod api;

pub mod model;

pub mod engine;
pub mod grammar;
pub mod text;

pub mod images;
pub mod tuner;
pub mod weights;

pub mod ops;
pub mod sample;

pub mod device;
pub mod tensor_types;

mod kernel;

#[cfg(test)]
mod generated;
#[cfg(test)]
mod typescript;

mod error;
pub use error::{Error, RequestFault, Result};
