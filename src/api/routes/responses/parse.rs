//! From the body of `POST /responses` to a plan (specification 20.1), and what the answer repeats of it. Items of the input
//! are read in `fields::input`.

use serde_json::{Map, Value, json};

use super::echo::{Echo, ResponseReasoning, ResponseTextConfig};
use super::request::{ResponseFields, ResponseOwnFields, known_fields};
use crate::api::error::rename_param;
use crate::api::fields::{
    Body, Fields, Form, UnknownFieldPolicy, constraints, drafting, input, invalid_type,
    invalid_value, length, model, refused, restrictions, sampling, shorten, streaming, thinking,
    tools,
};
use crate::api::plan::{MessageRequest, Plan};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{RequestFault, Result, api::error::fault};

const OUTPUT_LOGPROBS: &str = "message.output_text.logprobs";
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The strings of `include` that name results of tools which a vendor runs.
const FOREIGN_INCLUDES: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// Fields that need a server which keeps answers.
pub(super) const STORED: [refused::Refused; 2] = [
    refused::off(ResponseOwnFields::store.name).instead("no answers are stored"),
    refused::off(ResponseOwnFields::background.name)
        .instead("answers are given at once, not later"),
];

/// Properties of the answer that the plan does not have.
#[derive(Debug)]
pub(super) struct Answer {
    pub stream: bool,
    /// Reasoning items have `encrypted_content`.
    pub has_encrypted: bool,
    pub echo: Echo,
}

/// Parses and validates a body. `now` is what the chat template's clock shows; `warn_unknown` is called with the name of
/// each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    now: LocalTime,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Answer)> {
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let fields = read_fields(body, &mut unknown)?;
    let model = model::read(&fields, switches)?;
    let constraint = constraints::read(&fields, switches, Form::Flat)?;
    let usable = tools::read(&fields, switches.tool_names, Form::Flat)?;
    let template_tools = template_tools(&fields, usable.as_ref())?;
    let mut conversation = input::read(&fields, template_tools, switches, now)?;
    let reasoning = reasoning(&fields, &mut unknown)?;
    conversation.reasoning_effort = reasoning.effort;
    let text = text(&fields, &mut unknown)?;
    if let Some(verbosity) = text.verbosity {
        let variables = &mut conversation.variables;
        variables.entry("verbosity").or_insert(verbosity.into());
    }
    model::check_user(&fields)?;
    let own_name = ResponseOwnFields::max_output_tokens.name;
    let length = length::read_of_message(&fields, switches, Some(own_name))?;
    let stream = streaming::read(&fields, switches, &mut unknown)?.stream;
    let include = include(&fields)?;
    let has_logprobs = include.contains(&OUTPUT_LOGPROBS);
    let top_logprobs = top_logprobs(&fields, switches, has_logprobs)?;
    check_truncation(&fields)?;
    let sampling = sampling::read(&fields, switches)?;
    let echo = Echo {
        instructions: fields.string("instructions")?.map(str::to_owned),
        max_output_tokens: length.max_tokens.map(|given| given.tokens),
        max_tool_calls: ResponseOwnFields::max_tool_calls.read(&fields, switches)?,
        metadata: metadata(&fields)?,
        // The model may decide otherwise.
        parallel_tool_calls: conversation.parallel_tool_calls.unwrap_or(true),
        prompt_cache_key: ResponseOwnFields::prompt_cache_key.read(&fields, switches)?,
        reasoning,
        safety_identifier: ResponseOwnFields::safety_identifier.read(&fields, switches)?,
        text,
        tool_choice: tool_choice(&fields),
        tools: declared_tools(&fields)?,
        top_logprobs,
        user: fields.string("user")?.map(str::to_owned),
    };
    let logprobs_mode = ResponseOwnFields::logprobs_mode.read(&fields, switches)?;
    let mut plan = Plan::of_message(MessageRequest {
        model,
        conversation,
        length,
        restrictions: restrictions::read(&fields, switches)?,
        drafting: drafting::read(&fields, switches)?,
        sampling,
        constraint,
    });
    plan.logprobs.top = has_logprobs.then_some(top_logprobs);
    plan.logprobs.mode = logprobs_mode;
    // The last events of an item repeat all of it.
    plan.repeats_delivered = true;
    let answer = Answer {
        stream,
        has_encrypted: include.contains(&ENCRYPTED_REASONING),
        echo,
    };
    Ok((plan, answer))
}

/// The fields of the body, without any that is refused by its name.
fn read_fields(body: &[u8], unknown: &mut UnknownFieldPolicy<'_>) -> Result<Fields> {
    let fields = Body::parse_fields(body)?;
    unknown.check(fields.names(), known_fields)?;
    refused::check(&fields, ResponseFields::names)?;
    refused::check_each(&fields, &STORED)?;
    Ok(fields)
}

/// The choice of the request, which the answer repeats. The forms of chat, with members of their own, become those of
/// responses.
fn tool_choice(fields: &Fields) -> Value {
    let Some(choice) = fields.get(ResponseOwnFields::tool_choice.name) else {
        return "auto".into();
    };
    let mut choice = choice.clone();
    flatten(&mut choice, "allowed_tools");
    let tools = choice.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        flatten(tool, "function");
    }
    flatten(&mut choice, "function");
    choice
}

/// Replaces the member `name` of an object by its members, if it is an object.
fn flatten(object: &mut Value, name: &str) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    if let Some(Value::Object(own)) = members.get(name).cloned() {
        members.shift_remove(name);
        members.extend(own);
    }
}

/// The number of most likely tokens that are listed per position.
fn top_logprobs(fields: &Fields, switches: &Switches, has_logprobs: bool) -> Result<usize> {
    let top = ResponseOwnFields::top_logprobs.read(fields, switches)?;
    if top > 0 && !has_logprobs {
        let message = format!("top_logprobs needs \"{OUTPUT_LOGPROBS}\" in include");
        return Err(fault(RequestFault::InvalidValue, "top_logprobs", message));
    }
    Ok(top)
}

fn check_truncation(fields: &Fields) -> Result<()> {
    const TRUNCATION: &str = ResponseOwnFields::truncation.name;
    if fields.word(TRUNCATION, &["auto", "disabled"])? == Some("auto") {
        let message = "truncation: items are not dropped from the input; \"disabled\" refuses an input that is too long";
        let kind = RequestFault::UnsupportedParameter;
        return Err(fault(kind, TRUNCATION, message));
    }
    Ok(())
}

/// The usable tools as templates know them: with a function inside.
fn template_tools(fields: &Fields, usable: Option<&tools::ToolCalls>) -> Result<Vec<Value>> {
    let usable = usable.map_or(&[][..], |calls| &calls.tools);
    let declared = fields
        .array(ResponseOwnFields::tools.name)?
        .unwrap_or_default();
    let declared = declared.iter().filter_map(Value::as_object);
    let declared = declared.filter(|tool| {
        let name = tool.get("name").and_then(Value::as_str);
        usable.iter().any(|usable| name == Some(&usable.name))
    });
    let nested = declared.map(|tool| {
        let mut function = tool.clone();
        function.shift_remove("type");
        json!({"type": "function", "function": function})
    });
    Ok(nested.collect())
}

/// The declared tools with all members that the answer has.
fn declared_tools(fields: &Fields) -> Result<Vec<Value>> {
    let declared = fields
        .array(ResponseOwnFields::tools.name)?
        .unwrap_or_default();
    let tool = |tool: &Value| {
        json!({
            "type": "function", "name": tool["name"], "description": tool["description"],
            "parameters": tool["parameters"], "strict": tool["strict"].as_bool().unwrap_or(false),
        })
    };
    Ok(declared.iter().map(tool).collect())
}

fn reasoning(fields: &Fields, unknown: &mut UnknownFieldPolicy<'_>) -> Result<ResponseReasoning> {
    const SUMMARIES: &[&str] = &["auto", "concise", "detailed"];
    let members = members(fields, ResponseOwnFields::reasoning.name)?;
    unknown.check_members(
        "reasoning",
        &members,
        &["effort", "summary", "generate_summary"],
    )?;
    let word = |name: &str, words| {
        let word = members.word(name, words);
        word.map_err(|error| rename_param(error, &[(name, "reasoning")]))
    };
    let summary = word("summary", SUMMARIES)?;
    Ok(ResponseReasoning {
        effort: word("effort", thinking::EFFORTS)?,
        summary: summary.or(word("generate_summary", SUMMARIES)?),
    })
}

/// `text`, whose format was read as a constraint.
fn text(fields: &Fields, unknown: &mut UnknownFieldPolicy<'_>) -> Result<ResponseTextConfig> {
    let members = members(fields, ResponseOwnFields::text.name)?;
    unknown.check_members("text", &members, &["format", "verbosity"])?;
    let format = members.get("format").and_then(Value::as_object);
    let verbosity = members.word("verbosity", &["low", "medium", "high"]);
    Ok(ResponseTextConfig {
        format: format.map_or_else(|| json!({"type": "text"}), whole_format),
        verbosity: verbosity.map_err(|error| rename_param(error, &[("verbosity", "text")]))?,
    })
}

/// The format with all members that the answer has.
fn whole_format(format: &Map<String, Value>) -> Value {
    let mut format = format.clone();
    if format.get("type").and_then(Value::as_str) == Some("json_schema") {
        for (name, absent) in [
            ("name", "".into()),
            ("description", Value::Null),
            ("strict", false.into()),
        ] {
            let member = format.entry(name).or_insert(Value::Null);
            if member.is_null() {
                *member = absent;
            }
        }
    }
    Value::Object(format)
}

/// The members of an object, none without it.
fn members(fields: &Fields, name: &str) -> Result<Fields> {
    Ok(Fields::new(
        fields.object(name)?.cloned().unwrap_or_default(),
    ))
}

fn include(fields: &Fields) -> Result<Vec<&str>> {
    const INCLUDE: &str = ResponseOwnFields::include.name;
    let mut names = Vec::new();
    for element in fields.array(INCLUDE)?.unwrap_or_default() {
        let name = element.as_str();
        let name = name.ok_or_else(|| invalid_type(INCLUDE, "made of strings", element))?;
        if FOREIGN_INCLUDES.contains(&name) {
            let message = format!("include: \"{name}\" is not supported");
            return Err(fault(RequestFault::UnsupportedParameter, INCLUDE, message));
        }
        if ![OUTPUT_LOGPROBS, ENCRYPTED_REASONING].contains(&name) {
            let name = shorten(name);
            return Err(invalid_value(INCLUDE, format!("\"{name}\" is not known")));
        }
        names.push(name);
    }
    Ok(names)
}

fn metadata(fields: &Fields) -> Result<Map<String, Value>> {
    let metadata = fields
        .object(ResponseOwnFields::metadata.name)?
        .cloned()
        .unwrap_or_default();
    match metadata.values().find(|value| !value.is_string()) {
        None => Ok(metadata),
        Some(other) => Err(invalid_type("metadata", "an object of strings", other)),
    }
}
