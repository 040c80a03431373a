//! `tools` and `tool_choice` (specification 9.4): the declared functions, and whether the model may or
//! must call which of them. How a model writes a call is in `grammar`.

use serde_json::{Map, Value};

use super::declare::{Field, fields, wire_types};
use super::form::Form;
use super::kinds::{Shape, shape};
use super::reader::{Fields, describe, invalid_type, invalid_value, member, shorten, unknown_type};
use crate::api::error::fault;
use crate::api::switches::ToolNames;
use crate::grammar::{Tool, check_schema};
use crate::{Error, RequestFault, Result};

fields! {
    ToolFields uses [FunctionTool, ToolChoice] {
        /// Functions that the model may call.
        tools: Field<Shape> = shape("object[]", "FunctionTool[]"),
        /// Whether the model may or must call a tool, and which.
        tool_choice: Field<Shape> = shape("string or object", "ToolChoice").default_is("`auto` with tools"),
    }
}

wire_types! {
    /// A function that the model may call.
    #[ts(tag = "type", rename = "FunctionTool", rename_all = "snake_case")]
    pub(in crate::api) enum FunctionTool {
        Function { function: FunctionDeclaration },
    }

    /// The function of a [`FunctionTool`].
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct FunctionDeclaration {
        name: String,
        description: Option<String>,
        /// A JSON schema of an object.
        #[ts(optional, type = "Record<string, unknown> | null")]
        parameters: Option<()>,
        /// Whether the arguments must satisfy `parameters`.
        strict: Option<bool>,
    }

    /// A tool of `tools`, by name.
    #[ts(untagged)]
    pub(in crate::api) enum ToolName {
        Flat {
            #[ts(type = "\"function\"")]
            r#type: (),
            name: String,
        },
        Nested {
            #[ts(type = "\"function\"")]
            r#type: (),
            #[ts(type = "{ name: string }")]
            function: (),
        },
    }

    /// Whether the model may or must call a tool, and which.
    #[ts(rename_all = "snake_case")]
    pub(in crate::api) enum ToolChoice {
        None,
        Auto,
        Required,
        #[ts(untagged)]
        Named(ToolName),
        #[ts(untagged)]
        Allowed {
            #[ts(type = "\"allowed_tools\"")]
            r#type: (),
            #[ts(type = "\"auto\" | \"required\"")]
            mode: (),
            tools: Vec<ToolName>,
        },
        /// The form of OpenAI's chat endpoint, where the mode and the tools are in an object.
        #[ts(untagged)]
        AllowedNested {
            #[ts(type = "\"allowed_tools\"")]
            r#type: (),
            #[ts(type = "{ mode: \"auto\" | \"required\"; tools: Array<ToolName> }")]
            allowed_tools: (),
        },
    }
}

const TOOLS: &str = ToolFields::tools.name;
const CHOICE: &str = ToolFields::tool_choice.name;

const MAX_NAME_BYTES: usize = 64;

/// Tool types that OpenAI runs on its own servers, which a page cannot do.
const HOSTED: &[&str] = &[
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
];

/// The tools that the model may call, and whether it has to.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct ToolCalls {
    /// The tools that `tool_choice` allows, in the order of `tools`; at least one.
    pub tools: Vec<Tool>,
    /// Whether the whole completion must be one call; otherwise the constraint begins where the text begins
    /// like a call.
    pub is_forced: bool,
}

impl ToolCalls {
    /// Whether a request whose calls cannot be constrained has to be refused.
    pub(in crate::api) fn demands_grammar(&self) -> bool {
        self.is_forced || self.tools.iter().any(|tool| tool.strict)
    }
}

/// `None` if no tool may be called.
pub(in crate::api) fn read(
    fields: &Fields,
    names: ToolNames,
    form: Form,
) -> Result<Option<ToolCalls>> {
    let mut tools = Vec::new();
    for declared in fields.array(TOOLS)?.unwrap_or_default() {
        let tool = tool(declared, names, form)?;
        if tools.iter().any(|other: &Tool| other.name == tool.name) {
            let message = format!("two tools are called \"{}\"", tool.name);
            return Err(invalid_value(TOOLS, message));
        }
        tools.push(tool);
    }
    let choice = tool_choice(fields, &tools)?;
    if let Some(usable) = choice.usable {
        tools.retain(|tool| usable.contains(&tool.name));
    }
    if choice.is_forced && tools.is_empty() {
        return Err(invalid_value(CHOICE, "asks for a tool, but there is none"));
    }
    Ok((!tools.is_empty()).then_some(ToolCalls {
        tools,
        is_forced: choice.is_forced,
    }))
}

fn tool(declared: &Value, names: ToolNames, form: Form) -> Result<Tool> {
    let declared = declared
        .as_object()
        .ok_or_else(|| invalid_type(TOOLS, "an array of objects", declared))?;
    check_type(TOOLS, declared)?;
    let function = match (form, member(declared, "function")) {
        (Form::Flat, _) => declared,
        (Form::Nested, Some(Value::Object(function))) => function,
        (Form::Nested, Some(other)) => {
            let expected = "objects whose function is an object";
            return Err(invalid_type(TOOLS, expected, other));
        }
        (Form::Nested, None) => return Err(invalid_value(TOOLS, "a tool needs a function")),
    };
    let name = member(function, "name")
        .and_then(Value::as_str)
        .filter(|name| is_legal_name(name, names))
        .ok_or_else(|| {
            let of = format!(" of 1 to {MAX_NAME_BYTES} of [A-Za-z0-9_-]");
            let of = if names == ToolNames::Any { "" } else { &of };
            invalid_value(TOOLS, format!("a function needs a name{of}"))
        })?;
    let wrong = |fault_kind, key: &str, value: &Value| {
        let message = format!("tools: {key} of \"{name}\" must not be {}", describe(value));
        fault(fault_kind, TOOLS, message)
    };
    if let Some(value) = member(function, "description").filter(|value| !value.is_string()) {
        return Err(wrong(RequestFault::InvalidType, "description", value));
    }
    let strict = match member(function, "strict") {
        None => false,
        Some(Value::Bool(strict)) => *strict,
        Some(other) => return Err(wrong(RequestFault::InvalidType, "strict", other)),
    };
    let parameters = member(function, "parameters");
    if let Some(schema) = parameters.filter(|schema| !is_object_schema(schema)) {
        return Err(wrong(RequestFault::InvalidSchema, "parameters", schema));
    }
    if let Some(Err(reason)) = parameters.map(check_schema) {
        let message = format!("tools: parameters of \"{name}\": {reason}");
        return Err(fault(RequestFault::InvalidSchema, TOOLS, message));
    }
    Ok(Tool {
        name: name.to_owned(),
        parameters: parameters.cloned(),
        strict,
    })
}

/// Checks that `object` has `"type":"function"`.
fn check_type(field: &str, object: &Map<String, Value>) -> Result<()> {
    match member(object, "type") {
        Some(Value::String(kind)) if kind == "function" => Ok(()),
        Some(Value::String(kind)) => Err(not_a_function(field, kind)),
        Some(other) => Err(invalid_type(
            field,
            "made of objects whose type is a string",
            other,
        )),
        None => Err(invalid_value(field, "a tool needs the type \"function\"")),
    }
}

fn not_a_function(field: &str, kind: &str) -> Error {
    if HOSTED.contains(&kind) {
        let message = format!("{field}: tools of type \"{kind}\" run on a vendor's servers");
        return fault(RequestFault::UnsupportedParameter, field, message);
    }
    unknown_type(field, kind)
}

fn is_legal_name(name: &str, names: ToolNames) -> bool {
    if names == ToolNames::Any {
        return !name.is_empty();
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_legal)
}

/// Whether the schema can describe objects: it is an object that names no other type.
fn is_object_schema(schema: &Value) -> bool {
    match schema.as_object().map(|schema| schema.get("type")) {
        None => false,
        Some(None) => true,
        Some(Some(Value::Array(kinds))) => kinds.iter().any(|kind| kind == "object"),
        Some(Some(kind)) => kind == "object",
    }
}

/// The value of `tool_choice`.
struct AllowedTools {
    /// Names of declared tools; `None`: all of them.
    usable: Option<Vec<String>>,
    is_forced: bool,
}

fn tool_choice(fields: &Fields, tools: &[Tool]) -> Result<AllowedTools> {
    let all = |is_forced| {
        Ok(AllowedTools {
            usable: None,
            is_forced,
        })
    };
    let choice = match fields.get(CHOICE) {
        None => return all(false),
        Some(Value::String(word)) => {
            return match word.as_str() {
                "none" => Ok(AllowedTools {
                    usable: Some(Vec::new()),
                    is_forced: false,
                }),
                "auto" => all(false),
                "required" => all(true),
                other => Err(unknown_type(CHOICE, other)),
            };
        }
        Some(Value::Object(choice)) => choice,
        Some(other) => return Err(invalid_type(CHOICE, "a string or an object", other)),
    };
    if member(choice, "type").and_then(Value::as_str) == Some("allowed_tools") {
        return allowed_tools(choice, tools);
    }
    Ok(AllowedTools {
        usable: Some(vec![declared_name(choice, tools)?]),
        is_forced: true,
    })
}

/// `choice` has the members itself, as in OpenAI's responses, or in a member of its own, as in its chat.
fn allowed_tools(choice: &Map<String, Value>, tools: &[Tool]) -> Result<AllowedTools> {
    let nested = member(choice, "allowed_tools").and_then(Value::as_object);
    let choice = nested.unwrap_or(choice);
    let allowed = match member(choice, "tools") {
        Some(Value::Array(allowed)) => allowed,
        Some(other) => {
            return Err(invalid_type(
                CHOICE,
                "an object with an array of tools",
                other,
            ));
        }
        None => return Err(invalid_value(CHOICE, "allowed_tools needs tools")),
    };
    let name = |tool: &Value| match tool {
        Value::Object(tool) => declared_name(tool, tools),
        other => Err(invalid_type(
            CHOICE,
            "made of tools that are objects",
            other,
        )),
    };
    let usable = allowed.iter().map(name).collect::<Result<_>>()?;
    let is_forced = match member(choice, "mode") {
        Some(Value::String(mode)) if mode == "auto" => false,
        Some(Value::String(mode)) if mode == "required" => true,
        _ => {
            let message = "mode must be \"auto\" or \"required\"";
            return Err(invalid_value(CHOICE, message));
        }
    };
    Ok(AllowedTools {
        usable: Some(usable),
        is_forced,
    })
}

/// The declared tool that `choice` names, as `{"function":{"name"}}` or as `{"name"}`.
fn declared_name(choice: &Map<String, Value>, tools: &[Tool]) -> Result<String> {
    check_type(CHOICE, choice)?;
    let nested = member(choice, "function").and_then(Value::as_object);
    match member(nested.unwrap_or(choice), "name").and_then(Value::as_str) {
        Some(name) if tools.iter().any(|tool| tool.name == name) => Ok(name.to_owned()),
        Some(name) => {
            let message = format!("names the undeclared tool \"{}\"", shorten(name));
            Err(invalid_value(CHOICE, message))
        }
        None => Err(invalid_value(CHOICE, "names no tool")),
    }
}
