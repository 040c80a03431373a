//! inpage: OpenAI's `POST /v1/completions`, answered inside the web page.
//!
//! The modules stand in the order in which a request passes them, except that `model` stands above
//! `engine`, whose contract it implements; that list is the map.
//! A module may use the ones below it as ARCHITECTURE.md allows, never the ones above.

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

pub mod tuner;
pub mod weights;

pub mod ops;
pub mod sample;

pub mod device;
pub mod tensor_types;

#[cfg(test)]
mod typescript;

mod error;
pub use error::{Error, RequestFault, Result};
