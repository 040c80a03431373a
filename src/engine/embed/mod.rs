//! Token ids in, one vector per text out: the queue and the loop of a model that embeds. Never sees text
//! or JSON. An engine that embeds generates nothing, so the two kinds of work never share a model's memory.
//!
//! A file uses those above it in this table:
//!
//! | file | part |
//! |---|---|
//! | `model` | the contract with a model |
//! | `job` | a request: its inputs, its reader, its next batch |
//! | `handle` | the entry: submitting requests |
//! | `run` | the loop |

mod handle;
mod job;
mod model;
mod run;

#[cfg(test)]
mod tests;

pub use handle::{EmbeddingHandle, Embeddings};
pub use model::{EmbeddingLimits, EmbeddingModel};
pub use run::EmbeddingEngine;
