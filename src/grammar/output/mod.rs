//! What model families write: reasoning, tool calls and content (specification 9.4 and 9.5). Which family
//! it is follows from the chat template and the vocabulary; requests and responses are outside this module.
//!
//! `form` knows the families, `reader` divides a stream of text into parts. The other files read the body
//! of a call: `json`, `named`, `markup`, `invocation`, `deepseek`; `harmony` reads whole outputs of
//! gpt-oss.

mod deepseek;
mod delivery;
mod form;
mod harmony;
mod invocation;
mod json;
mod literal;
mod markup;
mod named;
mod reader;
mod values;

pub use delivery::OutputPart;
pub use form::OutputForm;
pub use reader::OutputReader;

#[cfg(test)]
mod tests;
