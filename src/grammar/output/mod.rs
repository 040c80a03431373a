//! Reads the output of model families: reasoning, tool calls and content (specification 9.4 and 9.5). The chat template and
//! the vocabulary tell the family; requests and responses are outside this module.
//!
//! `form` knows the families, `beginning` what the prompt has opened; `reader` divides a stream of text into
//! parts. `json`, `named`, `markup`, `invocation` and `deepseek` read the body of a call, `harmony` whole
//! outputs of gpt-oss.

mod beginning;
mod deepseek;
mod delivery;
mod form;
pub(super) mod harmony;
mod invocation;
mod json;
mod json_text;
mod literal;
mod markup;
mod named;
mod reader;
mod values;

pub(super) use beginning::{Beginning, beginning};
pub(super) use deepseek::{CALL, CALL_END, CLOSER, OPENER, SEPARATOR};
pub use delivery::OutputPart;
pub(super) use form::CallForm;
pub use form::OutputForm;
pub(super) use invocation::{FUNCTION_GEMMA, GEMMA4, Invocation, LFM2, LLAMA};
pub(super) use markup::{CDATA_OPEN, GLM, MINICPM, Markup, QWEN};
pub use reader::OutputReader;
pub(super) use values::{Types, reference};

#[cfg(test)]
mod tests;
