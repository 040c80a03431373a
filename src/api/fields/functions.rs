//! `functions` and `function_call` (specification 18.10), OpenAI's older form of `tools` and `tool_choice`: they are put in
//! their place, and `tools` reads them.

use serde_json::{Value, json};

use super::declare::{Field, fields};
use super::kinds::{Shape, shape};
use super::reader::{Fields, invalid_type, unknown_type};
use super::tools::ToolFields;
use crate::api::error::{fault, rename_param};
use crate::{Error, RequestFault, Result};

fields! {
    FunctionFields uses [super::tools::FunctionDeclaration] {
        /// The older form of `tools`: the functions that the model may call, one per message.
        functions: Field<Shape> = shape("object[]", "FunctionDeclaration[]"),
        /// The older form of `tool_choice`.
        function_call: Field<Shape> = shape(
            "`none`, `auto` or `{\"name\"}`",
            "\"none\" | \"auto\" | { name: string }",
        )
        .default_is("`auto` with functions"),
    }
}

const FUNCTIONS: &str = FunctionFields::functions.name;
const CALL: &str = FunctionFields::function_call.name;
const TOOLS: &str = ToolFields::tools.name;
const CHOICE: &str = ToolFields::tool_choice.name;

/// Sets `tools` and `tool_choice` to what the older fields say. Returns whether they are used.
///
/// # Errors
/// `conflicting_parameters` beside a newer field, and values of wrong types.
pub(in crate::api) fn to_tools(fields: &mut Fields) -> Result<bool> {
    let choice = match fields.get(CALL) {
        None => None,
        Some(Value::String(word)) if word == "none" || word == "auto" => Some(json!(word)),
        Some(Value::String(word)) => return Err(unknown_type(CALL, word)),
        Some(Value::Object(function)) => Some(json!({"type": "function", "function": function})),
        Some(other) => return Err(invalid_type(CALL, "a string or an object", other)),
    };
    let tool = |function: &Value| json!({"type": "function", "function": function});
    let functions = fields.array(FUNCTIONS)?;
    let functions = functions.map(|functions| functions.iter().map(tool).collect::<Vec<_>>());
    if choice.is_none() && functions.is_none() {
        return Ok(false);
    }
    let older = if functions.is_some() { FUNCTIONS } else { CALL };
    if let Some(newer) = [TOOLS, CHOICE]
        .into_iter()
        .find(|name| fields.get(name).is_some())
    {
        let message = format!("{older} and {newer} cannot be combined");
        return Err(fault(RequestFault::ConflictingParameters, older, message));
    }
    if let Some(functions) = functions {
        fields.set(TOOLS, functions.into());
    }
    if let Some(choice) = choice {
        fields.set(CHOICE, choice);
    }
    Ok(true)
}

/// Names the older fields in an error about the newer ones.
pub(in crate::api) fn rename(error: Error) -> Error {
    rename_param(error, &[(TOOLS, FUNCTIONS), (CHOICE, CALL)])
}
