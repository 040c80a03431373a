//! Constrained output (specification 9): what a completion must match, as masks over token ids. Regular
//! expressions, JSON schemas, Lark grammars and tool calls are compiled with llguidance; requests,
//! models and logits are outside this module.
//!
//! `compiler` turns a source into a `Grammar`; `schema`, `lark` and `regex` reject in advance what
//! llguidance would get wrong or take too long for, within a `budget`; `tools` builds grammars of tool
//! calls; `matcher` follows one completion.

mod budget;
mod compiler;
mod lark;
mod matcher;
mod opener;
mod output;
mod regex;
mod schema;
mod token_trie;
mod tool;
mod tools;

pub use compiler::{Compiler, Grammar, GrammarError, GrammarSource};
pub use matcher::{Matcher, Next};
pub use output::{OutputForm, OutputPart, OutputReader};
pub use tool::{Tool, ToolCall};
pub use tools::CallFormat;

#[cfg(test)]
mod tests;
