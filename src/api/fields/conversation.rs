//! `messages` and what decides how the chat template renders them (specification 18.2 to 18.4). Which template renders
//! them, and what it makes of them, is decided once the model is known.

use serde_json::{Map, Value, json};

use super::declare::{fields, wire_types};
use super::reader::{
    Fields, describe, invalid_type, invalid_value, member, missing, missing_member, shorten,
};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::text::{LocalTime, alias_reasoning};
use crate::{Error, RequestFault, Result};

fields! {
    ConversationFields {
        /// The conversation so far.
        #[ts(type = "ChatMessage[]")]
        messages: (),
        /// Further variables of the chat template.
        #[ts(optional, type = "Record<string, unknown> | null")]
        chat_template_kwargs: Option<()>,
        /// How much the model should think, if its chat template knows the word.
        #[ts(optional, type = "\"none\" | \"minimal\" | \"low\" | \"medium\" | \"high\" | \"xhigh\" | \"max\" | null")]
        reasoning_effort: Option<()>,
        /// End the prompt with the beginning of the assistant's message.
        add_generation_prompt: Option<bool>,
        /// Continue the last message instead of beginning one.
        continue_final_message: Option<bool>,
        /// Whether the model may call several tools in one message.
        parallel_tool_calls: Option<bool>,
    }
}

wire_types! {
    /// A message of a conversation.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ChatMessage {
        #[ts(type = "\"system\" | \"developer\" | \"user\" | \"assistant\" | \"tool\" | \"function\"")]
        role: (),
        #[ts(optional, type = "string | ChatContentPart[] | null")]
        content: Option<()>,
        name: Option<String>,
        /// Calls that the assistant made.
        tool_calls: Option<Vec<ChatMessageCall>>,
        /// The call that a tool answers.
        tool_call_id: Option<String>,
        /// What the assistant thought; also called `reasoning`.
        reasoning_content: Option<String>,
        /// Why the assistant refused.
        refusal: Option<String>,
    }

    /// A part of a message's content.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ChatContentPart {
        Text { text: String },
        Refusal { refusal: String },
    }

    /// A call that the assistant made.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ChatMessageCall {
        id: Option<String>,
        #[ts(type = "\"function\"")]
        r#type: (),
        #[ts(type = "{ name: string, arguments: string }")]
        function: (),
    }
}

const MESSAGES: &str = "messages";
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A conversation for a chat template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct Conversation {
    /// At least one, in the form that templates know: content as text, arguments of calls as objects.
    pub messages: Vec<Value>,
    /// The template instead of the model's.
    pub template: Option<String>,
    /// The tools that may be called, as the request declares them.
    pub tools: Vec<Value>,
    /// The members of `chat_template_kwargs`.
    pub variables: Map<String, Value>,
    pub reasoning_effort: Option<&'static str>,
    pub add_generation_prompt: bool,
    pub continues_final_message: bool,
    pub parallel_tool_calls: bool,
    /// What the template's clock shows.
    pub now: LocalTime,
}

/// Reads the fields. `usable_tools` are the names of the tools that may be called.
pub(in crate::api) fn read(
    fields: &Fields,
    usable_tools: &[&str],
    switches: &Switches,
    now: LocalTime,
) -> Result<Conversation> {
    let given = fields.array(MESSAGES)?.ok_or_else(|| missing(MESSAGES))?;
    if given.is_empty() {
        return Err(invalid_value(MESSAGES, "must not be an empty array"));
    }
    let messages = given.iter().enumerate();
    let messages = messages
        .map(|(index, given)| message(index, given))
        .collect::<Result<Vec<_>>>()?;
    let is_usable = |tool: &&Value| {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        usable_tools.contains(&name)
    };
    let tools = fields.array("tools")?.unwrap_or_default();
    let continues_final_message = fields.boolean("continue_final_message")?.unwrap_or(false);
    let add_generation_prompt = fields.boolean("add_generation_prompt")?;
    if continues_final_message && add_generation_prompt == Some(true) {
        return Err(fault(
            RequestFault::ConflictingParameters,
            "continue_final_message",
            "continue_final_message and add_generation_prompt cannot be combined",
        ));
    }
    Ok(Conversation {
        messages,
        template: switches.chat_template.clone(),
        tools: tools.iter().filter(is_usable).cloned().collect(),
        variables: fields
            .object("chat_template_kwargs")?
            .cloned()
            .unwrap_or_default(),
        reasoning_effort: fields.word("reasoning_effort", EFFORTS)?,
        add_generation_prompt: add_generation_prompt.unwrap_or(!continues_final_message),
        continues_final_message,
        parallel_tool_calls: fields.boolean("parallel_tool_calls")?.unwrap_or(true),
        now,
    })
}

/// One message of the request.
struct Given<'a> {
    index: usize,
    members: &'a Map<String, Value>,
}

impl<'a> Given<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        member(self.members, name)
    }

    fn wrong_type(&self, name: &str, expected: &str, value: &Value) -> Error {
        let message = format!(
            "messages[{}].{name} must be {expected}, not {}",
            self.index,
            describe(value)
        );
        fault(RequestFault::InvalidType, MESSAGES, message)
    }

    fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        let message = format!("messages[{}]: {reason}", self.index);
        fault(RequestFault::InvalidValue, MESSAGES, message)
    }

    fn missing(&self, name: &str) -> Error {
        missing_member(&format!("messages[{}]", self.index), name).about(MESSAGES)
    }

    fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }
}

/// An error with another parameter.
trait About {
    fn about(self, param: &str) -> Error;
}

impl About for Error {
    fn about(self, name: &str) -> Error {
        match self {
            Error::Request { fault, message, .. } => Error::Request {
                fault,
                param: Some(name.to_owned()),
                message,
            },
            other => other,
        }
    }
}

fn message(index: usize, given: &Value) -> Result<Value> {
    let members = given
        .as_object()
        .ok_or_else(|| invalid_type(MESSAGES, "an array of objects", given))?;
    let given = Given { index, members };
    let role = given.string("role")?.ok_or_else(|| given.missing("role"))?;
    let template_role = match role {
        "system" | "developer" | "user" | "assistant" | "tool" => role,
        // What tools were called before; templates know the newer name.
        "function" => "tool",
        other => {
            let role = shorten(other);
            return Err(given.wrong(format!("\"{role}\" is not a known role")));
        }
    };
    let is_assistant = role == "assistant";
    let mut message = Map::new();
    message.insert("role".into(), template_role.into());
    let content = content(&given)?;
    let refusal = given.string("refusal")?.map(str::to_owned);
    match content.or(refusal.filter(|_| is_assistant)) {
        Some(text) => drop(message.insert("content".into(), text.into())),
        None if is_assistant => {}
        None => return Err(given.missing("content")),
    }
    for name in ["name", "tool_call_id"] {
        if let Some(text) = given.string(name)? {
            message.insert(name.into(), text.into());
        }
    }
    let mut reasoning = None;
    for name in ["reasoning_content", "reasoning", "thinking"] {
        reasoning = reasoning.or(given.string(name)?);
    }
    let calls = calls(&given)?;
    if is_assistant {
        if let Some(reasoning) = reasoning {
            message.insert("reasoning_content".into(), reasoning.into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        if !message.contains_key("content") {
            // Templates differ in whether they expect the member: some append to it.
            message.insert("content".into(), "".into());
        }
    }
    let mut message = Value::Object(message);
    alias_reasoning(&mut message);
    Ok(message)
}

/// The content as one text; parts are joined by newlines.
fn content(given: &Given<'_>) -> Result<Option<String>> {
    let parts = match given.get("content") {
        None => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(text.clone())),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(given.wrong_type("content", "a string or an array", other)),
    };
    let texts = parts.iter().map(|part| part_text(given, part));
    Ok(Some(texts.collect::<Result<Vec<_>>>()?.join("\n")))
}

/// The text of a part of the content.
fn part_text<'a>(given: &Given<'_>, part: &'a Value) -> Result<&'a str> {
    let kind = part.get("type").and_then(Value::as_str);
    let kind = kind.ok_or_else(|| given.wrong("a part of content needs a type"))?;
    let name = match kind {
        "text" | "input_text" | "output_text" => "text",
        "refusal" => "refusal",
        "image_url" | "input_image" | "input_audio" | "audio_url" | "video_url" | "file" => {
            let message = format!(
                "messages[{}]: the model takes text only, but a part is of type \"{kind}\"",
                given.index
            );
            return Err(fault(RequestFault::UnsupportedParameter, MESSAGES, message));
        }
        other => {
            let kind = shorten(other);
            return Err(given.wrong(format!("\"{kind}\" is not a known type of a part")));
        }
    };
    match part.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(given.wrong_type(&format!("content[].{name}"), "a string", other)),
        None => Err(given.wrong(format!("a part of type \"{kind}\" needs {name}"))),
    }
}

/// The calls of an assistant's message, in the form that templates know.
fn calls(given: &Given<'_>) -> Result<Vec<Value>> {
    let calls = match given.get("tool_calls") {
        None => &[][..],
        Some(Value::Array(calls)) => calls,
        Some(other) => return Err(given.wrong_type("tool_calls", "an array", other)),
    };
    let mut result = Vec::with_capacity(calls.len());
    for call in calls {
        let id = call.get("id").filter(|id| !id.is_null());
        if let Some(other) = id.filter(|id| !id.is_string()) {
            return Err(given.wrong_type("tool_calls[].id", "a string", other));
        }
        let function = call.get("function");
        let function = function.ok_or_else(|| given.wrong("a tool call needs a function"))?;
        let mut call = json!({"type": "function", "function": function_of(given, function)?});
        if let Some(id) = id {
            call["id"] = id.clone();
        }
        result.push(call);
    }
    if let Some(function) = given.get("function_call") {
        result.push(json!({"type": "function", "function": function_of(given, function)?}));
    }
    Ok(result)
}

/// Name and arguments. Arguments that are the text of an object become that object: templates walk through it.
fn function_of(given: &Given<'_>, function: &Value) -> Result<Value> {
    let name = match function.get("name") {
        Some(Value::String(name)) => name,
        _ => return Err(given.wrong("a tool call needs the name of a function")),
    };
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(arguments) => Value::Object(arguments),
            Err(_) => Value::String(text.clone()),
        },
        Some(object @ Value::Object(_)) => object.clone(),
        Some(other) => {
            let expected = "a string of JSON";
            return Err(given.wrong_type("tool_calls[].function.arguments", expected, other));
        }
    };
    Ok(json!({"name": name, "arguments": arguments}))
}
