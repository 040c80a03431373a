//! Constrained output (specification 9): what a completion must match, as masks over token ids. Regular
//! expressions, JSON schemas, Lark grammars and tool calls are compiled with llguidance; requests,
//! models and logits are outside this module.
//!
//! `compiler` turns a source into a `Grammar`; `schema`, `lark` and `regex` reject in advance what
//! llguidance would get wrong or take too long for, within a `budget`; `closed` closes objects, and `validity` checks
//! whether something is a schema at all; `gbnf` translates to Lark; `output` reads what models write, and `calls` builds
//! grammars of the tool calls that it reads; `matcher` follows one completion, and `guard` keeps its JSON from running on, with `closing` and
//! `formats`.
//!
//! Masks are computed while the device works. The model submits before its future first suspends, and the engine then
//! computes the next mask. There is one `Compiler` per model (built on first use), one `Grammar` per request, one
//! `Matcher` per candidate. llguidance cannot be interrupted in a page, so `grammar/budget.rs` refuses beforehand what
//! would take too long, and `schema` and `lark` refuse constraints that it gets wrong.

mod budget;
mod calls;
mod closed;
mod closing;
mod compiler;
mod formats;
mod gbnf;
mod guard;
mod lark;
mod matcher;
mod opener;
mod output;
mod regex;
mod schema;
mod stop_regex;
mod token_trie;
mod tool;
mod validity;

pub use calls::{Turn, parse_completion};
pub use closed::Objects;
pub use compiler::{Compiler, Grammar, GrammarError, GrammarSource};
pub use matcher::{Matcher, Next};
pub use output::{OutputForm, OutputPart, OutputReader};
pub use regex::choice_regex;
pub use schema::Whitespace;
pub use stop_regex::stop_pattern;
pub use tool::{Tool, ToolCall};
pub use validity::check_schema;

#[cfg(test)]
mod tests;
