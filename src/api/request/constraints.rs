//! Constrained output (API.md section 9): validates response_format, grammar, tools and
//! tool_choice. None of them is built yet, so whatever would constrain is refused; nothing is
//! compiled here.

use serde_json::{Map, Value};

use super::fields::{Fields, describe, invalid_type, invalid_value};
use crate::api::error::fault;
use crate::grammar::{GrammarSource, Tool};
use crate::{Error, RequestFault, Result};

pub(super) const FIELDS: &[&str] = &["response_format", "grammar", "tools", "tool_choice"];

const MAX_TOOL_NAME_BYTES: usize = 64;

/// Tool types that OpenAI runs on its own servers.
const HOSTED_TOOLS: &[&str] = &[
    "code_interpreter",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "web_search",
    "web_search_preview",
];

/// What the fields of this group come to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) enum Constraint {
    /// Anything goes.
    None,
    /// The completion must be this; `param` names the field that says so, `is_schema` whether a
    /// fault is `invalid_schema` rather than `invalid_grammar`.
    Grammar {
        source: GrammarSource,
        param: &'static str,
        is_schema: bool,
    },
    /// The completion is or may be a tool call.
    Tools(ToolCalls),
}

/// Declared tools and how far the model is held to them. Only usable tools are listed: those that
/// `tool_choice` allows.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct ToolCalls {
    pub tools: Vec<Tool>,
    /// One call from the first token on; otherwise only once the text begins like a call.
    pub is_forced: bool,
}

pub(super) fn check(fields: &Fields) -> Result<()> {
    let formatted = check_response_format(fields)?;
    let grammar = check_grammar(fields)?;
    let names = tool_names(fields)?;
    let choice = tool_choice(fields, &names)?;
    let forced = choice == ToolChoice::Forced;
    let mut constraints = Vec::new();
    constraints.extend(formatted.then_some("response_format"));
    constraints.extend(grammar.then_some("grammar"));
    constraints.extend(forced.then_some("tool_choice"));
    if let [first, later, ..] = constraints[..] {
        return Err(fault(
            RequestFault::ConflictingParameters,
            later,
            format!("{later} and {first} exclude each other"),
        ));
    }
    for name in constraints {
        fields.refuse(name);
    }
    if !names.is_empty() && choice != ToolChoice::None {
        fields.refuse("tools");
    }
    Ok(())
}

/// Whether the output has to be JSON.
fn check_response_format(fields: &Fields) -> Result<bool> {
    let name = "response_format";
    let Some(format) = fields.object(name)? else {
        return Ok(false);
    };
    match member(format, "type").ok_or_else(|| missing(name, "type"))? {
        Value::String(kind) if kind == "text" => return Ok(false),
        Value::String(kind) if kind == "json_object" => {
            if let Some(schema) = member(format, "schema") {
                check_schema(name, schema)?;
            }
        }
        Value::String(kind) if kind == "json_schema" => {
            let schema =
                member(format, "json_schema").ok_or_else(|| missing(name, "json_schema"))?;
            // OpenAI nests the schema, Fireworks does not.
            let nested = schema.as_object().and_then(|outer| outer.get("schema"));
            check_schema(name, nested.unwrap_or(schema))?;
        }
        Value::String(kind) => return Err(unknown_type(name, kind)),
        other => {
            return Err(invalid_type(
                name,
                "an object whose type is a string",
                other,
            ));
        }
    }
    Ok(true)
}

fn check_schema(name: &str, schema: &Value) -> Result<()> {
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(()),
        other => Err(fault(
            RequestFault::InvalidSchema,
            name,
            format!(
                "{name}: a schema must be an object or a boolean, not {}",
                describe(other)
            ),
        )),
    }
}

/// Whether there is a grammar.
fn check_grammar(fields: &Fields) -> Result<bool> {
    let name = "grammar";
    let Some(grammar) = fields.object(name)? else {
        return Ok(false);
    };
    let kind = match member(grammar, "type").ok_or_else(|| missing(name, "type"))? {
        Value::String(kind) => kind.as_str(),
        other => {
            return Err(invalid_type(
                name,
                "an object whose type is a string",
                other,
            ));
        }
    };
    let value = member(grammar, "value");
    let is_legal: fn(&Value) -> bool = match kind {
        "regex" | "lark" => Value::is_string,
        "json_schema" => |value| value.is_object() || value.is_boolean(),
        "llguidance" => Value::is_object,
        other => return Err(unknown_type(name, other)),
    };
    let value = value.ok_or_else(|| missing(name, "value"))?;
    if is_legal(value) {
        Ok(true)
    } else {
        let expected = format!("an object with a value that fits the type {kind}");
        Err(invalid_type(name, &expected, value))
    }
}

/// The names of the declared functions.
fn tool_names(fields: &Fields) -> Result<Vec<&str>> {
    let name = "tools";
    let mut names = Vec::new();
    for tool in fields.array(name)?.unwrap_or_default() {
        let tool = tool
            .as_object()
            .ok_or_else(|| invalid_type(name, "an array of objects", tool))?;
        match member(tool, "type") {
            Some(Value::String(kind)) if kind == "function" => {}
            Some(Value::String(kind)) if HOSTED_TOOLS.contains(&kind.as_str()) => {
                return Err(fault(
                    RequestFault::UnsupportedParameter,
                    name,
                    format!("tools of type \"{kind}\" run on a vendor's servers"),
                ));
            }
            Some(Value::String(kind)) => return Err(unknown_type(name, kind)),
            Some(other) => return Err(invalid_type(name, "objects whose type is a string", other)),
            None => return Err(invalid_value(name, "a tool needs the type \"function\"")),
        }
        let function_name = function_name(tool)?;
        if names.contains(&function_name) {
            let message = format!("two tools are called \"{function_name}\"");
            return Err(invalid_value(name, message));
        }
        names.push(function_name);
    }
    Ok(names)
}

/// Validates the function of one tool and returns its name.
fn function_name(tool: &Map<String, Value>) -> Result<&str> {
    let name = "tools";
    let function = match member(tool, "function") {
        Some(Value::Object(function)) => function,
        Some(other) => {
            let expected = "objects whose function is an object";
            return Err(invalid_type(name, expected, other));
        }
        None => return Err(invalid_value(name, "a tool needs a function")),
    };
    let function_name = member(function, "name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if function_name.is_empty()
        || function_name.len() > MAX_TOOL_NAME_BYTES
        || !function_name.bytes().all(legal)
    {
        let message =
            format!("a function needs a name of 1 to {MAX_TOOL_NAME_BYTES} of [A-Za-z0-9_-]");
        return Err(invalid_value(name, message));
    }
    for (key, is_legal, fault_kind) in [
        (
            "description",
            Value::is_string as fn(&Value) -> bool,
            RequestFault::InvalidType,
        ),
        ("strict", Value::is_boolean, RequestFault::InvalidType),
        ("parameters", Value::is_object, RequestFault::InvalidSchema),
    ] {
        if let Some(value) = member(function, key).filter(|value| !is_legal(value)) {
            let message = format!(
                "tools: {key} of \"{function_name}\" must not be {}",
                describe(value)
            );
            return Err(fault(fault_kind, name, message));
        }
    }
    Ok(function_name)
}

/// What `tool_choice` comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolChoice {
    None,
    Auto,
    /// Some call has to be made.
    Forced,
}

fn tool_choice(fields: &Fields, names: &[&str]) -> Result<ToolChoice> {
    let field = "tool_choice";
    let require = |usable: bool| {
        if usable {
            Ok(ToolChoice::Forced)
        } else {
            Err(invalid_value(field, "asks for a tool, but there is none"))
        }
    };
    let choice = match fields.get(field) {
        None => return Ok(ToolChoice::Auto),
        Some(Value::String(word)) => {
            return match word.as_str() {
                "none" => Ok(ToolChoice::None),
                "auto" => Ok(ToolChoice::Auto),
                "required" => require(!names.is_empty()),
                other => Err(unknown_type(field, other)),
            };
        }
        Some(Value::Object(choice)) => choice,
        Some(other) => return Err(invalid_type(field, "a string or an object", other)),
    };
    match member(choice, "type").and_then(Value::as_str) {
        Some("function") => {
            check_declared(choice, names)?;
            Ok(ToolChoice::Forced)
        }
        Some("allowed_tools") => {
            let allowed = match member(choice, "tools") {
                Some(Value::Array(allowed)) => allowed.as_slice(),
                Some(other) => return Err(invalid_type(field, "an object with tools", other)),
                None => &[],
            };
            for tool in allowed {
                let tool = tool
                    .as_object()
                    .ok_or_else(|| invalid_type(field, "made of tools that are objects", tool))?;
                check_declared(tool, names)?;
            }
            match member(choice, "mode").and_then(Value::as_str) {
                Some("auto") => Ok(ToolChoice::Auto),
                Some("required") => require(!allowed.is_empty()),
                _ => Err(invalid_value(
                    field,
                    "mode must be \"auto\" or \"required\"",
                )),
            }
        }
        Some(other) => Err(unknown_type(field, other)),
        None => Err(invalid_value(field, "needs a type")),
    }
}

/// Whether `choice` names a declared tool, as `{"function":{"name"}}` or as `{"name"}`.
fn check_declared(choice: &Map<String, Value>, names: &[&str]) -> Result<()> {
    let nested = member(choice, "function").and_then(Value::as_object);
    let name = member(nested.unwrap_or(choice), "name").and_then(Value::as_str);
    match name {
        Some(name) if names.contains(&name) => Ok(()),
        Some(name) => Err(invalid_value(
            "tool_choice",
            format!(
                "names the undeclared tool \"{}\"",
                super::fields::shorten(name)
            ),
        )),
        None => Err(invalid_value("tool_choice", "names no tool")),
    }
}

/// A member of a nested object, unless absent or null.
fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

fn missing(name: &str, member: &str) -> Error {
    fault(
        RequestFault::MissingRequiredParameter,
        name,
        format!("{name} needs the member \"{member}\""),
    )
}

fn unknown_type(name: &str, given: &str) -> Error {
    let given = super::fields::shorten(given);
    invalid_value(name, format!("\"{given}\" is not a known type"))
}
