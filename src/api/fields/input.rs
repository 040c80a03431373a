//! `input` and `instructions` of Responses: from items to the messages that chat templates know (specification 20.2). The
//! fields about the answer are the concern of the route.

use serde_json::{Map, Value};

use super::compaction;
use super::conversation::Conversation;
use super::declare::{Field, fields, wire_types};
use super::given::{Given, arguments, call, result};
use super::images::ImageUrls;
use super::kinds::{Flag, Shape, Text, flag, shape, text};
use super::reader::{Fields, invalid_type, invalid_value, missing, shorten};
use crate::api::switches::Switches;
use crate::text::{LocalTime, alias_reasoning};
use crate::{RequestFault, Result};

fields! {
    InputFields uses [ResponseInputItem, ResponseInputPart] {
        /// The conversation so far: a string of the user, or items: messages, calls, their results, reasoning and
        /// compactions. Items of an earlier response can be sent back as they are.
        input: Field<Shape> = shape("string or object[]", "string | ResponseInputItem[]").required(),
        /// A system message in front of `input`.
        instructions: Field<Text> = text(),
        /// Further variables of the chat template.
        chat_template_kwargs: Field<Shape> = shape("object", "Record<string, unknown>").of("vLLM"),
        /// Whether the model may call several tools in one answer.
        parallel_tool_calls: Field<Flag> = flag().default_is("true; false if the model's `tools` are `generic`"),
    }
}

wire_types! {
    /// An item of a conversation. The items of an answer are items, too.
    #[ts(untagged)]
    pub(in crate::api) enum ResponseInputItem {
        Message(ResponseInputMessage),
        Call(ResponseInputCall),
        CallOutput(ResponseCallOutput),
        Reasoning(ResponseInputReasoning),
        Compaction(ResponseInputCompaction),
    }

    /// A message of a conversation.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseInputMessage {
        #[ts(optional, type = "\"message\"")]
        r#type: Option<()>,
        #[ts(type = "\"system\" | \"developer\" | \"user\" | \"assistant\"")]
        role: (),
        #[ts(type = "string | ResponseInputPart[]")]
        content: (),
        id: Option<String>,
        status: Option<String>,
    }

    /// A part of a message's content, or of a tool's result.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ResponseInputPart {
        InputText { text: String },
        OutputText { text: String },
        Refusal { refusal: String },
    }

    /// A call that the model made.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseInputCall {
        #[ts(type = "\"function_call\"")]
        r#type: (),
        call_id: String,
        name: String,
        /// JSON text.
        arguments: String,
        id: Option<String>,
        status: Option<String>,
    }

    /// The result of a call.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseCallOutput {
        #[ts(type = "\"function_call_output\"")]
        r#type: (),
        call_id: String,
        #[ts(type = "string | ResponseInputPart[]")]
        output: (),
        id: Option<String>,
        status: Option<String>,
    }

    /// The reasoning of the model.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseInputReasoning {
        #[ts(type = "\"reasoning\"")]
        r#type: (),
        #[ts(optional, type = "{ type: \"reasoning_text\", text: string }[] | null")]
        content: Option<()>,
        #[ts(optional, type = "{ type: \"summary_text\", text: string }[] | null")]
        summary: Option<()>,
        /// The string that an answer of this endpoint had here.
        encrypted_content: Option<String>,
        id: Option<String>,
        status: Option<String>,
    }

    /// A conversation that was compacted.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct ResponseInputCompaction {
        #[ts(type = "\"compaction\"")]
        r#type: (),
        /// The string that this endpoint wrote.
        encrypted_content: String,
        id: Option<String>,
    }
}

const INPUT: &str = InputFields::input.name;

/// The beginning of `encrypted_content` of this endpoint. The reasoning follows as it is: it is no secret of the page.
pub(in crate::api) const ENCRYPTED_PREFIX: &str = "inpage:";

/// Items of tools that a vendor runs, and references to what a vendor has stored.
const FOREIGN: &[&str] = &[
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// Reads the fields. `tools` are those that may be called, in the form that templates know.
pub(in crate::api) fn read(
    fields: &Fields,
    tools: Vec<Value>,
    switches: &Switches,
    now: LocalTime,
) -> Result<Conversation> {
    let mut messages = Messages::new(switches);
    if let Some(instructions) = InputFields::instructions.read(fields, switches)? {
        messages.push_text("system", &instructions);
    }
    match fields.get(INPUT) {
        None => return Err(missing(INPUT)),
        Some(Value::String(text)) => messages.push_text("user", text),
        Some(Value::Array(items)) if items.is_empty() => {
            return Err(invalid_value(INPUT, "must not be an empty array"));
        }
        Some(Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                messages.push_item(&Given::new(INPUT, index, item)?)?;
            }
        }
        Some(other) => return Err(invalid_type(INPUT, "a string or an array", other)),
    }
    let (messages, images) = messages.finish();
    Ok(Conversation {
        messages,
        images: images.finish(INPUT),
        template: switches.chat_template.clone(),
        tools,
        variables: fields
            .object(InputFields::chat_template_kwargs.name)?
            .cloned()
            .unwrap_or_default(),
        reasoning_effort: None,
        add_generation_prompt: true,
        continues_final_message: false,
        is_prefill: false,
        parallel_tool_calls: InputFields::parallel_tool_calls.read(fields, switches)?,
        now,
    })
}

/// Messages for a chat template.
struct Messages {
    done: Vec<Value>,
    /// The assistant's message that the next items may belong to.
    open: Option<Turn>,
    /// Id and function of each call.
    calls: Vec<(String, String)>,
    /// The number of messages up to one with a summary. While it is the last one, messages of the user join it: many
    /// templates demand that roles alternate.
    summarized: Option<usize>,
    images: ImageUrls,
}

/// A message of the assistant in the making: templates expect reasoning, content and calls in one message.
#[derive(Default)]
pub(super) struct Turn {
    pub reasoning: Option<String>,
    pub content: Option<String>,
    pub calls: Vec<Value>,
}

impl Messages {
    fn new(switches: &Switches) -> Messages {
        Messages {
            done: Vec::new(),
            open: None,
            calls: Vec::new(),
            summarized: None,
            images: ImageUrls::new(switches),
        }
    }

    fn push_text(&mut self, role: &str, text: &str) {
        self.push(role, text.into());
    }

    fn push(&mut self, role: &str, content: Value) {
        self.close();
        if role == "user"
            && self.summarized == Some(self.done.len())
            && let Some(last) = self.done.last_mut()
        {
            last["content"] = compaction::joined(last["content"].take(), content);
            return;
        }
        let mut message = Map::new();
        message.insert("role".into(), role.into());
        message.insert("content".into(), content);
        self.done.push(Value::Object(message));
    }

    fn push_item(&mut self, item: &Given<'_>) -> Result<()> {
        match item.string("type")? {
            None | Some("message") => self.push_message(item),
            Some("reasoning") => self.push_reasoning(item),
            Some("function_call") => self.push_call(item),
            Some("function_call_output") => self.push_output(item),
            Some("compaction") => self.push_compaction(item),
            Some("compaction_trigger") => {
                let reason = "a compaction_trigger is not supported: POST /responses/compact compacts a conversation";
                Err(item.fault(RequestFault::UnsupportedParameter, reason))
            }
            Some("item_reference") => {
                let reason = "an item_reference needs stored answers, and nothing is stored: send the item itself \
                    (the AI SDK does so with the option store: false)";
                Err(item.fault(RequestFault::UnsupportedParameter, reason))
            }
            Some(kind) if FOREIGN.contains(&kind) => {
                let reason = format!("items of type \"{kind}\" are not supported");
                Err(item.fault(RequestFault::UnsupportedParameter, reason))
            }
            Some(other) => {
                let kind = shorten(other);
                Err(item.wrong(format!("\"{kind}\" is not a known type of an item")))
            }
        }
    }

    fn push_message(&mut self, item: &Given<'_>) -> Result<()> {
        let role = item.required_string("role")?;
        if !["system", "developer", "user", "assistant"].contains(&role) {
            let role = shorten(role);
            return Err(item.wrong(format!("\"{role}\" is not a known role")));
        }
        if role != "assistant" {
            let content = item.content("content", &mut self.images)?;
            self.push(role, content.ok_or_else(|| item.missing("content"))?);
            return Ok(());
        }
        let content = item.text("content")?;
        let content = content.ok_or_else(|| item.missing("content"))?;
        if self.open.as_ref().is_some_and(Turn::has_said) {
            self.close();
        }
        self.open.get_or_insert_default().content = Some(content);
        Ok(())
    }

    fn push_reasoning(&mut self, item: &Given<'_>) -> Result<()> {
        let Some(text) = reasoning(item)? else {
            return Ok(());
        };
        if self.open.as_ref().is_some_and(Turn::has_said) {
            self.close();
        }
        let turn = self.open.get_or_insert_default();
        let reasoning = turn.reasoning.get_or_insert_default();
        if !reasoning.is_empty() {
            reasoning.push('\n');
        }
        reasoning.push_str(&text);
        Ok(())
    }

    fn push_call(&mut self, item: &Given<'_>) -> Result<()> {
        let id = item.required_string("call_id")?;
        let name = item.required_string("name")?;
        let mut call = call(name, arguments(item.required_string("arguments")?));
        call["id"] = id.into();
        self.open.get_or_insert_default().calls.push(call);
        self.calls.push((id.to_owned(), name.to_owned()));
        Ok(())
    }

    fn push_output(&mut self, item: &Given<'_>) -> Result<()> {
        let id = item.required_string("call_id")?;
        let output = item.content("output", &mut self.images)?;
        let output = output.ok_or_else(|| item.missing("output"))?;
        let called = self.calls.iter().rfind(|(called, _)| called == id);
        let Some((_, name)) = called else {
            let id = shorten(id);
            return Err(item.wrong(format!(
                "no function_call before it has the call_id \"{id}\""
            )));
        };
        let result = result(id, name, output);
        self.close();
        self.done.push(result);
        Ok(())
    }

    fn push_compaction(&mut self, item: &Given<'_>) -> Result<()> {
        let summary = compaction::decode(item.required_string("encrypted_content")?);
        let summary = summary.map_err(|reason| item.wrong(reason))?;
        self.close();
        compaction::push_summary(&mut self.done, &summary);
        self.summarized = Some(self.done.len());
        Ok(())
    }

    /// The items that follow do not belong to the assistant's message.
    fn close(&mut self) {
        if let Some(turn) = self.open.take() {
            self.done.push(turn.message());
        }
    }

    fn finish(mut self) -> (Vec<Value>, ImageUrls) {
        self.close();
        (self.done, self.images)
    }
}

impl Turn {
    /// Whether anything follows its reasoning.
    fn has_said(&self) -> bool {
        self.content.is_some() || !self.calls.is_empty()
    }

    pub(super) fn message(self) -> Value {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        // Templates differ in whether they expect the member: some append to it.
        let content = self.content.unwrap_or_default();
        message.insert("content".into(), content.into());
        if let Some(reasoning) = self.reasoning {
            message.insert("reasoning_content".into(), reasoning.into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), self.calls.into());
        }
        let mut message = Value::Object(message);
        alias_reasoning(&mut message);
        message
    }
}

/// The text of a reasoning item: its content, what this endpoint wrote as `encrypted_content`, or its summary.
fn reasoning(item: &Given<'_>) -> Result<Option<String>> {
    let content = reasoning_text(item, "content", "reasoning_text")?;
    let summary = reasoning_text(item, "summary", "summary_text")?;
    let encrypted = item.string("encrypted_content")?;
    let ours = encrypted.and_then(|text| text.strip_prefix(ENCRYPTED_PREFIX));
    let text = content.or(ours.map(str::to_owned)).or(summary);
    if text.is_none() && encrypted.is_some() {
        return Err(item.wrong("its encrypted_content is not of this endpoint"));
    }
    Ok(text)
}

/// The joined strings of the parts in `name`; `None` if there are no parts.
fn reasoning_text(item: &Given<'_>, name: &str, kind: &str) -> Result<Option<String>> {
    let parts = match item.get(name) {
        None => return Ok(None),
        Some(Value::Array(parts)) => parts,
        Some(other) => return Err(item.wrong_type(name, "an array", other)),
    };
    let text = |part: &Value| match (&part["type"], &part["text"]) {
        (Value::String(given), Value::String(text)) if given == kind => Ok(text.clone()),
        _ => Err(item.wrong(format!("{name} has parts of type \"{kind}\" with a text"))),
    };
    let strings = parts.iter().map(text).collect::<Result<Vec<_>>>()?;
    Ok((!strings.is_empty()).then(|| strings.join("\n")))
}
