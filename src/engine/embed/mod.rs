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
//!
//! A model generates or embeds, never both. Its files decide: those that name a pooling make an `EmbeddingEngine`
//! (`engine/embed`), whose contract is one call, from token ids to a vector per text. It has no pages, no sampler and
//! no events, and the scheduler has no case for it. Requests take turns, a batch of inputs at a time; a dropped request
//! drops the call, which starts afresh with the next one. A causal model that embeds feeds its input through the steps
//! of a prompt, in a KV cache that nothing else uses.
//!
//! A reranker is one of these models: its input is a pair of texts, and its vector has the outputs of a classifier.

mod handle;
mod job;
mod model;
mod run;

#[cfg(test)]
mod tests;

pub use handle::{EmbeddingHandle, Embeddings};
pub use model::{EmbeddingInput, EmbeddingLimits, EmbeddingModel};
pub use run::EmbeddingEngine;
