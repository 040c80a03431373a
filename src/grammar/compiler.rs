//! From the source of a constraint to a compiled grammar.

use serde_json::Value;

use super::{CallFormat, Matcher, Tool};
use crate::text::Tokenizer;

/// What the whole completion must be.
#[derive(Debug, Clone, PartialEq)]
pub enum GrammarSource {
    /// Matches this expression from end to end.
    Regex(String),
    /// One JSON object.
    JsonObject,
    /// One JSON value valid for this schema.
    JsonSchema(Value),
    /// A Lark grammar in llguidance's dialect; starts at `start`.
    Lark(String),
    /// `{"grammars": [...], "max_tokens"?}` of llguidance.
    LlGuidance(Value),
    /// One tool call, or text that may begin with one.
    Tools {
        /// At least one.
        tools: Vec<Tool>,
        /// A call from the first token on.
        is_forced: bool,
        /// How the model writes it.
        format: CallFormat,
    },
}

/// Why a source does not compile; the text is the compiler's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrammarError {
    /// For humans.
    pub message: String,
}

/// Compiles constraints for one model's vocabulary.
pub struct Compiler {}

impl Compiler {
    /// A compiler for logits of `vocab_size` over the ids of `tokenizer`.
    pub fn new(_tokenizer: &Tokenizer, _vocab_size: usize) -> Compiler {
        Compiler {}
    }

    /// Compiles a constraint.
    ///
    /// # Errors
    /// What the source does wrong, or that it exceeds the budget.
    pub fn compile(&self, _source: &GrammarSource) -> Result<Grammar, GrammarError> {
        Err(GrammarError {
            message: "not built yet".to_owned(),
        })
    }
}

/// A compiled constraint; cheap to clone.
#[derive(Debug, Clone)]
pub struct Grammar {}

impl Grammar {
    /// The state at the start of a completion.
    pub fn matcher(&self) -> Matcher {
        Matcher {}
    }
}
