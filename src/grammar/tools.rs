//! Tool calls in a completion (API.md section 9.4): their grammar and their parsing.

use serde_json::Value;

/// A function the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Of `[A-Za-z0-9_-]`.
    pub name: String,
    /// Schema of the arguments, an object; `None`: any object.
    pub parameters: Option<Value>,
    /// Whether the arguments must satisfy `parameters`.
    pub strict: bool,
}

/// How a model family writes a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFormat {
    /// `{"name": ..., "arguments": {...}}` alone.
    Bare,
}

/// A call found in a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The function's name.
    pub name: String,
    /// Its arguments, JSON text.
    pub arguments: String,
}

impl CallFormat {
    /// The call that is the whole of `text`, if it is complete.
    pub fn parse(&self, _text: &str) -> Option<ToolCall> {
        None
    }
}
