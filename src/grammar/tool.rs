//! Functions that a request declares, and calls of them.

use serde_json::Value;

/// A function the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The name of the function, not empty.
    pub name: String,
    /// Schema of the arguments, which are an object. `None` allows any object.
    pub parameters: Option<Value>,
    /// Whether all of `parameters` must be enforced. Otherwise what cannot be enforced is left out.
    pub strict: bool,
}

/// A call found in a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The function's name.
    pub name: String,
    /// Its arguments as JSON text.
    pub arguments: String,
}
