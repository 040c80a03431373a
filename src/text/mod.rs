//! Between text and token ids: tokenizer, byte-exact detokenizer, stop strings.

pub mod stop;
pub mod utf8;

pub use stop::{StopMatcher, StopOutcome};
