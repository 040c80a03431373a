//! Grammars of tool calls in the form of a model's family (specification 9.4 and 9.5): what they enforce
//! is what `output` reads.
//!
//! `turn` joins reasoning, content and calls; `shape` knows the text around calls, `markup` and
//! `invocation` the forms whose arguments are not JSON, `untagged` those without an opening tag; `writer` collects rules;
//! `completion` parses the call that a completion consists of.

mod completion;
mod invocation;
mod markup;
mod parameters;
mod shape;
mod turn;
mod untagged;
mod writer;

pub use completion::parse_completion;
pub use turn::Turn;
pub(super) use turn::{completion, opener, turn};
