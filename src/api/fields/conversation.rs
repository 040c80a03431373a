//! `messages` and what decides how the chat template renders them (specification 18.2 to 18.4). Which template renders
//! them, and what it makes of them, is decided once the model is known.

use serde_json::{Map, Value};

use super::declare::{Field, fields, wire_types};
use super::given::{Given, arguments, call};
use super::images::{ImageUrls, RequestImages};
use super::kinds::{Flag, Shape, Words, flag, shape, words};
use super::reader::{Fields, invalid_value, missing, shorten};
use super::reasoning::{self, agreed};
use super::thinking::{self, EFFORTS};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::text::{LocalTime, alias_reasoning};
use crate::{RequestFault, Result};

fields! {
    ConversationFields uses [ChatMessage, thinking::ThinkingOptions] {
        /// The conversation so far. Roles are `system`, `developer`, `user`, `assistant`, `tool` and `function`; content is a
        /// string or parts.
        messages: Field<Shape> = shape("object[]", "ChatMessage[]").required().range("not empty"),
        /// Further variables of the chat template, such as `{"enable_thinking": false}`.
        chat_template_kwargs: Field<Shape> = shape("object", "Record<string, unknown>").of("vLLM"),
        /// The amount of thinking, if the model's chat template knows the word; `none` and `minimal` switch thinking off
        /// where the template can.
        reasoning_effort: Field<Words> = words(EFFORTS),
        /// Whether the model thinks before it answers, if its chat template knows the variable `enable_thinking`; `adaptive` and
        /// `between_tools` are what the template does by itself. `budget_tokens` bounds the tokens of thinking.
        thinking: Field<Shape> = shape("object", "ThinkingOptions")
            .default_is("what the template does by itself").of("Fireworks"),
        /// The same as `thinking` with `enabled` or `disabled`.
        enable_thinking: Field<Flag> = flag().default_is("what the template does by itself").of("mistral.rs"),
        /// The length that the text should have, if the chat template knows the word.
        verbosity: Field<Words> = words(&["low", "medium", "high"]),
        /// End the prompt with the beginning of the assistant's message.
        add_generation_prompt: Field<Flag> =
            flag().default_is("true, and false with `continue_final_message`").of("vLLM"),
        /// Continue the last message instead of beginning one.
        continue_final_message: Field<Flag> = flag()
            .default_is("false; true if the last message is a text of the assistant (`assistantPrefill`)")
            .of("vLLM"),
        /// Whether the model may call several tools in one message.
        parallel_tool_calls: Field<Flag> = flag().default_is("true; false if the model's `tools` are `generic`"),
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
        /// The older form of a call that the assistant made.
        #[ts(optional, type = "{ name: string, arguments: string } | null")]
        function_call: Option<()>,
        /// The call that a tool answers.
        tool_call_id: Option<String>,
        /// The reasoning of the assistant; also called `reasoning`.
        reasoning_content: Option<String>,
        /// The reason why the assistant refused.
        refusal: Option<String>,
    }

    /// A part of a message's content.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ChatContentPart {
        Text { text: String },
        Refusal { refusal: String },
        /// An image as a data URL.
        ImageUrl {
            #[ts(type = "string | { url: string, detail?: string | null }")]
            image_url: (),
        },
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

const MESSAGES: &str = ConversationFields::messages.name;

/// A conversation for a chat template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct Conversation {
    /// The messages, at least one, in the form that templates know: content as text or, with images, as a list of parts; arguments of
    /// calls as objects.
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
    /// Whether the answer continues the last message although no field asks for it. A new message begins then if the
    /// template does not print the last one at the end.
    pub is_prefill: bool,
    /// `None`: as suits the model.
    pub parallel_tool_calls: Option<bool>,
    /// The images of all messages, in their order.
    pub images: RequestImages,
    /// The time that the template's clock shows.
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
    let mut images = ImageUrls::new(switches);
    let mut messages = messages
        .map(|(index, given)| message(index, given, &mut images))
        .collect::<Result<Vec<_>>>()?;
    number_older_calls(given, &mut messages);
    let is_usable = |tool: &&Value| {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        usable_tools.contains(&name)
    };
    let tools = fields.array("tools")?.unwrap_or_default();
    let continues_final_message =
        ConversationFields::continue_final_message.read(fields, switches)?;
    let add_generation_prompt = ConversationFields::add_generation_prompt.read(fields, switches)?;
    let is_prefill = switches.assistant_prefill
        && continues_final_message.is_none()
        && add_generation_prompt.is_none()
        && given.last().is_some_and(is_begun);
    let continues_final_message = continues_final_message.unwrap_or(is_prefill);
    if continues_final_message && add_generation_prompt == Some(true) {
        return Err(fault(
            RequestFault::ConflictingParameters,
            "continue_final_message",
            "continue_final_message and add_generation_prompt cannot be combined",
        ));
    }
    let variables = fields.object(ConversationFields::chat_template_kwargs.name)?;
    let mut variables = variables.cloned().unwrap_or_default();
    if let Some(verbosity) = ConversationFields::verbosity.read(fields, switches)? {
        variables.entry("verbosity").or_insert(verbosity.into());
    }
    if let Some(thinks) = thinks(fields, switches)? {
        variables.entry("enable_thinking").or_insert(thinks.into());
    }
    Ok(Conversation {
        messages,
        template: switches.chat_template.clone(),
        tools: tools.iter().filter(is_usable).cloned().collect(),
        variables,
        reasoning_effort: effort(fields, switches)?,
        add_generation_prompt: add_generation_prompt.unwrap_or(!continues_final_message),
        continues_final_message,
        is_prefill,
        parallel_tool_calls: ConversationFields::parallel_tool_calls.read(fields, switches)?,
        images: images.finish(MESSAGES),
        now,
    })
}

/// The amount of thinking.
fn effort(fields: &Fields, switches: &Switches) -> Result<Option<&'static str>> {
    let field = ConversationFields::reasoning_effort;
    let effort = agreed(&[
        (field.name, field.read(fields, switches)?),
        ("reasoning.effort", reasoning::read(fields)?.effort),
    ])?;
    Ok(effort.map(|(_, effort)| effort))
}

/// Whether the model is told to think, or not to.
fn thinks(fields: &Fields, switches: &Switches) -> Result<Option<bool>> {
    let field = ConversationFields::enable_thinking;
    let thinking = thinking::read(fields, ConversationFields::thinking.name)?;
    let reasoning = reasoning::read(fields)?;
    let thinks = agreed(&[
        (field.name, field.read(fields, switches)?.map(Some)),
        (
            ConversationFields::thinking.name,
            thinking.map(|thinking| thinking.is_wanted),
        ),
        ("reasoning.enabled", reasoning.enabled.map(Some)),
    ])?;
    Ok(thinks.map_or(reasoning.inferred(), |(_, thinks)| thinks))
}

/// Gives calls and results of the older form, which have no ids, those that templates know.
fn number_older_calls(given: &[Value], messages: &mut [Value]) {
    // Some templates demand ids of nine characters.
    let mut id = String::new();
    for (index, (given, message)) in given.iter().zip(messages).enumerate() {
        if given["function_call"].is_object()
            && let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut)
        {
            id = format!("call{index:05}");
            if let Some(call) = calls.last_mut() {
                call["id"] = id.clone().into();
            }
        }
        if given["role"] == "function" && given["tool_call_id"].is_null() && !id.is_empty() {
            message["tool_call_id"] = id.clone().into();
        }
    }
}

/// Whether a message, as it is given, may be the beginning of the one that the model writes: of the assistant, with a text and
/// nothing else.
fn is_begun(given: &Value) -> bool {
    let is_text = |text: Option<&str>| text.is_some_and(|text| !text.trim().is_empty());
    let has_text = match &given["content"] {
        Value::Array(parts) => {
            let mut parts = parts.iter();
            parts.len() > 0 && parts.all(|part| is_text(part["text"].as_str()))
        }
        content => is_text(content.as_str()),
    };
    let others = ["tool_calls", "function_call", "refusal"];
    let is_absent =
        |member: &Value| member.is_null() || member.as_array().is_some_and(Vec::is_empty);
    let has_others = others.iter().any(|name| !is_absent(&given[*name]));
    given["role"] == "assistant" && has_text && !has_others
}

fn message(index: usize, given: &Value, images: &mut ImageUrls) -> Result<Value> {
    let given = Given::new(MESSAGES, index, given)?;
    let role = given.required_string("role")?;
    let template_role = match role {
        "system" | "developer" | "user" | "assistant" | "tool" => role,
        // The older name of the role of tools; templates know the newer one.
        "function" => "tool",
        other => {
            let role = shorten(other);
            return Err(given.wrong(format!("\"{role}\" is not a known role")));
        }
    };
    let is_assistant = role == "assistant";
    let mut message = Map::new();
    message.insert("role".into(), template_role.into());
    let content = match is_assistant {
        true => given.text("content")?.map(Value::String),
        false => given.content("content", images)?,
    };
    let refusal = given.string("refusal")?.filter(|_| is_assistant);
    match content.or(refusal.map(Value::from)) {
        Some(content) => drop(message.insert("content".into(), content)),
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
        let mut call = call_of(given, function)?;
        if let Some(id) = id {
            call["id"] = id.clone();
        }
        result.push(call);
    }
    if let Some(function) = given.get("function_call") {
        result.push(call_of(given, function)?);
    }
    Ok(result)
}

/// A call of the function with this name and these arguments.
fn call_of(given: &Given<'_>, function: &Value) -> Result<Value> {
    let name = match function.get("name") {
        Some(Value::String(name)) => name,
        _ => return Err(given.wrong("a tool call needs the name of a function")),
    };
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) => arguments(text),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(other) => {
            let expected = "a string of JSON";
            return Err(given.wrong_type("tool_calls[].function.arguments", expected, other));
        }
    };
    Ok(call(name, arguments))
}
