//! Token ids in, token ids out: scheduler, sequences, KV pages. Never sees text or JSON.

pub mod event;
pub mod generation;
