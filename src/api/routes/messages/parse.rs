//! From the body of `POST /messages` to a plan (specification 22.1). Turns and their blocks are read in `fields::blocks`; tools
//! and formats are written as Responses have them, so that one reader checks both.

use serde_json::{Map, Value, json};

use super::request::{MessageFields, MessageOwnFields, known_fields};
use crate::api::error::rename_param;
use crate::api::fields::thinking::{self, Thinking};
use crate::api::fields::{
    Body, Constraint, Fields, Form, UnknownFieldPolicy, blocks, constraints, drafting,
    invalid_type, invalid_value, kind, length, members, missing, model, refused, restrictions,
    sampling, shorten, streaming, tools, within,
};
use crate::api::plan::{MessagePlan, MessageRequest, Plan};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{Error, RequestFault, Result, api::error::fault};

const TOOLS: &str = MessageOwnFields::tools.name;
const CHOICE: &str = MessageOwnFields::tool_choice.name;
const CONFIG: &str = MessageOwnFields::output_config.name;
const FORMAT: &str = MessageOwnFields::output_format.name;

/// The field of Responses that holds the format.
const TEXT: &str = "text";

/// The beginnings of the types of tools that Anthropic defines; a date follows.
const FOREIGN_TOOLS: &[&str] = &[
    "advisor_",
    "bash_",
    "browser_",
    "code_execution_",
    "computer_",
    "mcp_toolset",
    "memory_",
    "text_editor_",
    "tool_search_tool_",
    "web_fetch_",
    "web_search_",
];

/// The task of the route for a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Answer,
    /// Count its tokens.
    Count,
}

/// Parses and validates a body; says whether the answer is a stream. `now` is what the chat template's clock shows;
/// `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    now: LocalTime,
    usage: Use,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, bool)> {
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let fields = Body::parse_fields(body)?;
    unknown.check(fields.names(), known_fields)?;
    refused::check(&fields, MessageFields::names)?;
    let model = model::read(&fields, switches)?;
    let choice = Choice::read(&fields)?;
    let format = format(&fields)?;
    let responses = as_responses(&fields, &choice, format.as_ref())?;
    let constraint = constraint(&responses, switches, format.map(|(field, _)| field))?;
    let usable = tools::read(&responses, switches.tool_names, Form::Flat).map_err(of_tools)?;
    let template_tools = template_tools(&responses, usable.as_ref())?;
    let mut conversation = blocks::read(&fields, template_tools, switches, now)?;
    conversation.parallel_tool_calls = choice.may_be_parallel;
    conversation.reasoning_effort = effort(&fields, &mut unknown)?;
    // Nobody who asks for no thinking expects a block of it in front of the text.
    let thinking = thinking::read(&fields, MessageOwnFields::thinking.name)?.unwrap_or(Thinking {
        is_wanted: Some(false),
        budget: None,
    });
    if let Some(thinks) = thinking.is_wanted {
        let variables = &mut conversation.variables;
        variables.entry("enable_thinking").or_insert(thinks.into());
    }
    model::check_user(&fields)?;
    let length = limits(&fields, switches, usage)?;
    let stream = streaming::read(&fields, switches, &mut unknown)?.stream;
    MessageOwnFields::temperature.read(&fields, switches)?;
    let sampling = sampling::read(&fields, switches)?;
    let mut plan = Plan::of_message(MessageRequest {
        model,
        conversation,
        length,
        restrictions: restrictions::read(&fields, switches)?,
        drafting: drafting::read(&fields, switches)?,
        sampling,
        constraint,
    });
    plan.message = Some(MessagePlan {
        parallel_calls: choice.may_be_parallel,
        thinking_budget: thinking.budget,
    });
    // The blocks are numbered.
    plan.repeats_delivered = true;
    Ok((plan, stream))
}

/// The limits of the answer's length.
fn limits(fields: &Fields, switches: &Switches, usage: Use) -> Result<length::Length> {
    let mut length = length::read_of_message(fields, switches, None)?;
    if length.max_tokens.is_none() && !length.fills_context && usage == Use::Answer {
        return Err(missing(MessageOwnFields::max_tokens.name));
    }
    if let Some(stop) = MessageOwnFields::stop_sequences.read(fields, switches)? {
        if !length.stop.is_empty() {
            let message = "stop_sequences and stop cannot be combined";
            let name = MessageOwnFields::stop_sequences.name;
            return Err(fault(RequestFault::ConflictingParameters, name, message));
        }
        length.stop = stop;
    }
    Ok(length)
}

/// `tool_choice`.
struct Choice {
    /// The choice in the form of Responses.
    responses: Option<Value>,
    /// `None`: as suits the model.
    may_be_parallel: Option<bool>,
}

impl Choice {
    fn read(fields: &Fields) -> Result<Choice> {
        let Some(choice) = members(fields, CHOICE)? else {
            return Ok(Choice {
                responses: None,
                may_be_parallel: None,
            });
        };
        const DISABLE: &str = "disable_parallel_tool_use";
        let disabled = within(CHOICE, DISABLE, choice.boolean(DISABLE))?;
        let kinds = ["auto", "any", "tool", "none"];
        let responses = match kind(CHOICE, &choice, &kinds)? {
            "any" => json!("required"),
            "tool" => json!({"type": "function", "name": choice.get("name")}),
            other => json!(other),
        };
        Ok(Choice {
            responses: Some(responses),
            may_be_parallel: disabled.map(|disabled| !disabled),
        })
    }
}

/// The format of the text and the field that has it.
fn format(fields: &Fields) -> Result<Option<(&'static str, Value)>> {
    let config = members(fields, CONFIG)?;
    let of_config = match &config {
        Some(config) => within(CONFIG, "format", config.object("format"))?,
        None => None,
    };
    match (of_config, fields.object(FORMAT)?) {
        (Some(_), Some(_)) => {
            let message = format!("{FORMAT} and {CONFIG}.format cannot be combined");
            Err(fault(RequestFault::ConflictingParameters, FORMAT, message))
        }
        (Some(format), None) => Ok(Some((CONFIG, format.clone().into()))),
        (None, Some(format)) => Ok(Some((FORMAT, format.clone().into()))),
        (None, None) => Ok(None),
    }
}

/// The fields with tools, their choice and the format as Responses have them.
fn as_responses(
    fields: &Fields,
    choice: &Choice,
    format: Option<&(&'static str, Value)>,
) -> Result<Fields> {
    let replaced = ["messages", "system", "tools", "tool_choice", TEXT];
    let kept = fields.names().filter(|name| !replaced.contains(name));
    let kept = kept.filter_map(|name| Some((name.to_owned(), fields.get(name)?.clone())));
    let mut members: Map<String, Value> = kept.collect();
    if let Some(declared) = fields.array(TOOLS)? {
        let tools = declared.iter().map(tool).collect::<Result<Vec<_>>>()?;
        members.insert(TOOLS.into(), tools.into());
    }
    if let Some(choice) = &choice.responses {
        members.insert(CHOICE.into(), choice.clone());
    }
    if let Some((_, format)) = format {
        members.insert(TEXT.into(), json!({"format": format}));
    }
    Ok(Fields::new(members))
}

/// A tool as Responses have it.
fn tool(declared: &Value) -> Result<Value> {
    let Value::Object(members) = declared else {
        return Err(invalid_type(TOOLS, "an array of objects", declared));
    };
    let given = |name: &str| members.get(name).filter(|value| !value.is_null());
    match given("type") {
        None => {}
        Some(Value::String(kind)) if kind == "custom" => {}
        Some(Value::String(kind)) => {
            let kind_shown = shorten(kind);
            if FOREIGN_TOOLS.iter().any(|start| kind.starts_with(start)) {
                let message = format!("{TOOLS}: \"{kind_shown}\" is a tool that Anthropic defines");
                return Err(fault(RequestFault::UnsupportedParameter, TOOLS, message));
            }
            let message = format!("\"{kind_shown}\" is not a known type");
            return Err(invalid_value(TOOLS, message));
        }
        Some(other) => {
            let expected = "made of objects whose type is a string";
            return Err(invalid_type(TOOLS, expected, other));
        }
    }
    let Some(schema) = given("input_schema") else {
        let message = format!("{TOOLS}: a tool needs an input_schema");
        let kind = RequestFault::MissingRequiredParameter;
        return Err(fault(kind, TOOLS, message));
    };
    let mut tool = json!({"type": "function", "parameters": schema});
    for name in ["name", "description", "strict"] {
        if let Some(value) = given(name) {
            tool[name] = value.clone();
        }
    }
    Ok(tool)
}

/// The constraint. `format` is the field that has the format.
fn constraint(
    responses: &Fields,
    switches: &Switches,
    format: Option<&'static str>,
) -> Result<Constraint> {
    let read = constraints::read(responses, switches, Form::Flat);
    let name = format.unwrap_or(CONFIG);
    let mut constraint = read.map_err(|error| of_tools(rename_param(error, &[(TEXT, name)])))?;
    if let Constraint::Grammar { param, .. } = &mut constraint
        && *param == TEXT
    {
        *param = name;
    }
    Ok(constraint)
}

/// The error with the word that this route has for the schema of a tool.
fn of_tools(error: Error) -> Error {
    let Error::Request {
        fault,
        param,
        message,
    } = error
    else {
        return error;
    };
    Error::Request {
        fault,
        param,
        message: message.replacen("tools: parameters of", "tools: input_schema of", 1),
    }
}

/// The usable tools as templates know them: with a function inside.
fn template_tools(responses: &Fields, usable: Option<&tools::ToolCalls>) -> Result<Vec<Value>> {
    let usable = usable.map_or(&[][..], |calls| &calls.tools);
    let declared = responses.array(TOOLS)?.unwrap_or_default().iter();
    let declared = declared.filter(|tool| usable.iter().any(|usable| tool["name"] == usable.name));
    let nested = declared.map(|tool| {
        let mut function = tool.as_object().cloned().unwrap_or_default();
        function.shift_remove("type");
        json!({"type": "function", "function": function})
    });
    Ok(nested.collect())
}

/// `output_config.effort`, and a report of the members of `output_config` that are not known.
fn effort(fields: &Fields, unknown: &mut UnknownFieldPolicy<'_>) -> Result<Option<&'static str>> {
    let Some(config) = members(fields, CONFIG)? else {
        return Ok(None);
    };
    unknown.check_members(CONFIG, &config, &["effort", "format"])?;
    let words = ["low", "medium", "high", "xhigh", "max"];
    within(CONFIG, "effort", config.word("effort", &words))
}
