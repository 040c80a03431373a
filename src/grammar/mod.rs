//! Constrained output (specification 9): what a completion must be, as masks over token ids.
//! Compiles regular expressions, JSON schemas, Lark grammars and tool calls with llguidance; knows
//! nothing of requests, models or logits.

mod budget;
mod compiler;
mod lark;
mod matcher;
mod regex;
mod schema;
mod token_trie;
mod tools;

pub use compiler::{Compiler, Grammar, GrammarError, GrammarSource};
pub use matcher::{Matcher, Next};
pub use tools::{CallFormat, Tool, ToolCall};

#[cfg(test)]
mod tests;
