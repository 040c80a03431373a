//! `system` and `messages` of Anthropic's Messages: from turns of blocks to the messages that chat templates know
//! (specification 22.2). The fields about the answer are the concern of the route.

use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use super::declare::{Field, fields, wire_types};
use super::given::{Given, call};
use super::images::{ImageUrls, RequestImages};
use super::input::Turn;
use super::kinds::{Shape, shape};
use super::reader::{Fields, invalid_type, invalid_value, member, missing, shorten};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{RequestFault, Result};

fields! {
    TurnFields uses [MessageTurn, MessageTurnBlock, MessageTextBlock] {
        /// The conversation so far: turns of `user`, `assistant` and `system`, whose content is a string or blocks. The content of an
        /// answer can be sent back as it is.
        messages: Field<Shape> = shape("object[]", "MessageTurn[]").required().range("not empty"),
        /// The system prompt.
        system: Field<Shape> = shape("string or array of text blocks", "string | MessageTextBlock[]"),
        /// Further variables of the chat template.
        chat_template_kwargs: Field<Shape> = shape("object", "Record<string, unknown>").of("vLLM"),
    }
}

wire_types! {
    /// A turn of a conversation.
    pub(in crate::api) struct MessageTurn {
        #[ts(type = "\"user\" | \"assistant\" | \"system\"")]
        role: (),
        #[ts(type = "string | MessageTurnBlock[]")]
        content: (),
    }

    /// A block of text.
    pub(in crate::api) struct MessageTextBlock {
        #[ts(type = "\"text\"")]
        r#type: (),
        text: String,
    }

    /// A block of a turn. The blocks of an answer are such blocks, too.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum MessageTurnBlock {
        Text { text: String },
        Image { source: MessageImageSource },
        /// A call that the assistant made.
        ToolUse {
            id: String,
            name: String,
            #[ts(type = "unknown")]
            input: (),
        },
        /// The result of a call.
        #[ts(optional_fields = nullable)]
        ToolResult {
            tool_use_id: String,
            /// A string, or blocks of text and images.
            #[ts(optional, type = "string | MessageTurnBlock[] | null")]
            content: Option<()>,
            is_error: Option<bool>,
        },
        /// What the assistant thought.
        #[ts(optional_fields = nullable)]
        Thinking {
            thinking: String,
            signature: Option<String>,
        },
        /// Not used.
        RedactedThinking { data: String },
    }

    /// Where an image is.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum MessageImageSource {
        Base64 { media_type: String, data: String },
        /// A data URL; in a page with the switch `remoteImages` also others.
        Url { url: String },
    }
}

const MESSAGES: &str = TurnFields::messages.name;
const SYSTEM: &str = TurnFields::system.name;

/// Types of blocks that need Anthropic's servers, or that models of this endpoint cannot read.
const FOREIGN: &[&str] = &[
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "compaction",
    "container_upload",
    "document",
    "mcp_tool_result",
    "mcp_tool_use",
    "search_result",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_reference",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// Reads the fields. `tools` are those that may be called, in the form that templates know.
pub(in crate::api) fn read(
    fields: &Fields,
    tools: Vec<Value>,
    switches: &Switches,
    now: LocalTime,
) -> Result<Conversation> {
    let given = fields.array(MESSAGES)?.ok_or_else(|| missing(MESSAGES))?;
    if given.is_empty() {
        return Err(invalid_value(MESSAGES, "must not be an empty array"));
    }
    let mut turns = Turns::new(switches);
    if let Some(text) = system(fields)? {
        turns.done.push(json!({"role": "system", "content": text}));
    }
    for (index, turn) in given.iter().enumerate() {
        turns.push(&Given::new(MESSAGES, index, turn)?)?;
    }
    let is_prefill = switches.assistant_prefill && turns.is_begun();
    let (messages, images) = turns.finish();
    Ok(Conversation {
        messages,
        template: switches.chat_template.clone(),
        tools,
        variables: fields
            .object(TurnFields::chat_template_kwargs.name)?
            .cloned()
            .unwrap_or_default(),
        reasoning_effort: None,
        add_generation_prompt: !is_prefill,
        continues_final_message: is_prefill,
        is_prefill,
        parallel_tool_calls: None,
        images,
        now,
    })
}

/// The system prompt; `None` without a text.
fn system(fields: &Fields) -> Result<Option<String>> {
    let text = match fields.get(SYSTEM) {
        None => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let text = |(index, block)| {
                let block = Given::new(SYSTEM, index, block)?;
                match block.required_string("type")? {
                    "text" => block.required_string("text"),
                    other => {
                        let kind = shorten(other);
                        Err(block.wrong(format!("\"{kind}\" is not \"text\"")))
                    }
                }
            };
            let texts = blocks.iter().enumerate().map(text);
            texts.collect::<Result<Vec<_>>>()?.join("\n")
        }
        Some(other) => return Err(invalid_type(SYSTEM, "a string or an array", other)),
    };
    Ok((!text.is_empty()).then_some(text))
}

/// Messages for a chat template. Turns of one role that follow each other are one message.
struct Turns {
    done: Vec<Value>,
    /// The parts of the user's message that the next blocks may belong to.
    said: Vec<Value>,
    /// The assistant's message that the next blocks may belong to.
    open: Option<Turn>,
    /// Id and function of each call.
    calls: Vec<(String, String)>,
    images: ImageUrls,
}

impl Turns {
    fn new(switches: &Switches) -> Turns {
        Turns {
            done: Vec::new(),
            said: Vec::new(),
            open: None,
            calls: Vec::new(),
            images: ImageUrls::new(switches),
        }
    }

    fn push(&mut self, turn: &Given<'_>) -> Result<()> {
        let is_user = match turn.required_string("role")? {
            "user" => true,
            "assistant" => false,
            "system" => return self.push_system(turn),
            other => {
                let role = shorten(other);
                return Err(turn.wrong(format!("\"{role}\" is not a known role")));
            }
        };
        match is_user {
            true => self.close_assistant(),
            false => {
                self.close_user();
                self.open.get_or_insert_default();
            }
        }
        match turn.get("content") {
            Some(Value::String(text)) if is_user => self.said.push(text_part(text)),
            Some(Value::String(text)) => self.add_text(text),
            Some(Value::Array(blocks)) => {
                if blocks.is_empty() && is_user {
                    return Err(turn.wrong("content must not be empty"));
                }
                for block in blocks {
                    let block = Block::new(turn, "content", block)?;
                    match is_user {
                        true => self.push_of_user(&block)?,
                        false => self.push_of_assistant(&block)?,
                    }
                }
            }
            Some(other) => {
                return Err(turn.wrong_type("content", "a string or an array", other));
            }
            None => return Err(turn.missing("content")),
        }
        Ok(())
    }

    fn push_system(&mut self, turn: &Given<'_>) -> Result<()> {
        let text = turn
            .text("content")?
            .ok_or_else(|| turn.missing("content"))?;
        self.close_user();
        self.close_assistant();
        self.done.push(json!({"role": "system", "content": text}));
        Ok(())
    }

    fn push_of_user(&mut self, block: &Block<'_>) -> Result<()> {
        if block.kind != "tool_result" {
            let part = block.part(&mut self.images)?;
            self.said.push(part);
            return Ok(());
        }
        let id = block.string("tool_use_id")?;
        let called = self.calls.iter().rfind(|(called, _)| called == id);
        let Some((_, name)) = called else {
            let id = shorten(id);
            let reason = format!("no tool_use before it has the id \"{id}\"");
            return Err(block.turn.wrong(reason));
        };
        let name = name.clone();
        let content = block.result(&mut self.images)?;
        self.close_user();
        let mut message = Map::new();
        message.insert("role".into(), "tool".into());
        message.insert("content".into(), content);
        message.insert("name".into(), name.into());
        message.insert("tool_call_id".into(), id.into());
        self.done.push(Value::Object(message));
        Ok(())
    }

    fn push_of_assistant(&mut self, block: &Block<'_>) -> Result<()> {
        match block.kind {
            "text" => self.add_text(block.string("text")?),
            "thinking" => {
                let turn = self.open.get_or_insert_default();
                append_line(&mut turn.reasoning, block.string("thinking")?);
            }
            // Only Anthropic can read it.
            "redacted_thinking" => {}
            "tool_use" => {
                let (id, name) = (block.string("id")?, block.string("name")?);
                let mut call = call(name, block.input()?);
                call["id"] = id.into();
                self.open.get_or_insert_default().calls.push(call);
                self.calls.push((id.to_owned(), name.to_owned()));
            }
            _ => return Err(block.refused("the assistant")),
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        append_line(&mut self.open.get_or_insert_default().content, text);
    }

    /// Whether the last message may be the beginning of the one that the model writes.
    fn is_begun(&self) -> bool {
        let has_text = |turn: &Turn| {
            let text = turn.content.as_deref().unwrap_or_default();
            turn.calls.is_empty() && !text.trim().is_empty()
        };
        self.open.as_ref().is_some_and(has_text)
    }

    fn close_user(&mut self) {
        if !self.said.is_empty() {
            let content = content(std::mem::take(&mut self.said));
            self.done.push(json!({"role": "user", "content": content}));
        }
    }

    fn close_assistant(&mut self) {
        if let Some(turn) = self.open.take() {
            self.done.push(turn.message());
        }
    }

    fn finish(mut self) -> (Vec<Value>, RequestImages) {
        self.close_user();
        self.close_assistant();
        (self.done, self.images.finish(MESSAGES))
    }
}

/// A block of a turn's content, or of a result's.
struct Block<'a> {
    turn: Given<'a>,
    /// Where it is, for messages.
    place: &'static str,
    kind: &'a str,
    members: &'a Map<String, Value>,
}

impl<'a> Block<'a> {
    fn new(turn: &Given<'a>, place: &'static str, given: &'a Value) -> Result<Block<'a>> {
        let Value::Object(members) = given else {
            let expected = "a string or an array of objects";
            return Err(turn.wrong_type(place, expected, given));
        };
        match member(members, "type") {
            Some(Value::String(kind)) => Ok(Block {
                turn: *turn,
                place,
                kind,
                members,
            }),
            Some(other) => {
                let name = format!("{place}[].type");
                Err(turn.wrong_type(&name, "a string", other))
            }
            None => Err(turn.wrong(format!("a block of {place} needs a type"))),
        }
    }

    fn needs(&self, name: &str) -> crate::Error {
        let kind = self.kind;
        self.turn
            .wrong(format!("a block of type \"{kind}\" needs {name}"))
    }

    fn wrong_type(&self, name: &str, expected: &str, given: &Value) -> crate::Error {
        let name = format!("{}[].{name}", self.place);
        self.turn.wrong_type(&name, expected, given)
    }

    /// A member that is a string.
    fn string(&self, name: &str) -> Result<&'a str> {
        match member(self.members, name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
            None => Err(self.needs(name)),
        }
    }

    /// The error about a block of this type that `whose` content cannot have.
    fn refused(&self, whose: &str) -> crate::Error {
        let kind = shorten(self.kind);
        if FOREIGN.contains(&self.kind) || self.kind == "image" {
            let reason = format!("blocks of type \"{kind}\" are not supported for {whose}");
            return self.turn.fault(RequestFault::UnsupportedParameter, reason);
        }
        let reason = format!("\"{kind}\" is not a type of a block of {whose}");
        self.turn.wrong(reason)
    }

    /// A text or an image as a part of a message.
    fn part(&self, images: &mut ImageUrls) -> Result<Value> {
        match self.kind {
            "text" => Ok(text_part(self.string("text")?)),
            "image" => {
                let pushed = images.push(&self.image_url()?);
                pushed.map_err(|reason| self.turn.wrong(format!("image: {reason}")))?;
                Ok(json!({"type": "image"}))
            }
            _ => Err(self.refused("the user")),
        }
    }

    fn image_url(&self) -> Result<String> {
        let source = match member(self.members, "source") {
            Some(Value::Object(source)) => source,
            Some(other) => return Err(self.wrong_type("source", "an object", other)),
            None => return Err(self.needs("source")),
        };
        let text = |name: &str| match member(source, name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(self.wrong_type(&format!("source.{name}"), "a string", other)),
            None => Err(self.needs(&format!("source.{name}"))),
        };
        match text("type")? {
            "base64" => Ok(format!(
                "data:{};base64,{}",
                text("media_type")?,
                text("data")?
            )),
            "url" => Ok(text("url")?.to_owned()),
            "file" => {
                let reason = "an image by file_id is not supported: no files are stored";
                Err(self.turn.fault(RequestFault::UnsupportedParameter, reason))
            }
            other => {
                let kind = shorten(other);
                let reason = format!("\"{kind}\" is not a known type of an image's source");
                Err(self.turn.wrong(reason))
            }
        }
    }

    /// The arguments of a call.
    fn input(&self) -> Result<Value> {
        match member(self.members, "input") {
            Some(input @ Value::Object(_)) => Ok(input.clone()),
            Some(other) => Err(self.wrong_type("input", "an object", other)),
            None => Err(self.needs("input")),
        }
    }

    /// The content of a result. Templates have no place for `is_error`, so the text says it.
    fn result(&self, images: &mut ImageUrls) -> Result<Value> {
        let is_error = match member(self.members, "is_error") {
            None => false,
            Some(Value::Bool(is_error)) => *is_error,
            Some(other) => return Err(self.wrong_type("is_error", "a boolean", other)),
        };
        let mut parts = match member(self.members, "content") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text_part(text)],
            Some(Value::Array(blocks)) => {
                let part = |block| Block::new(&self.turn, "content[].content", block)?.part(images);
                blocks.iter().map(part).collect::<Result<_>>()?
            }
            Some(other) => {
                return Err(self.wrong_type("content", "a string or an array", other));
            }
        };
        if is_error {
            match parts.first_mut() {
                Some(first) if first["type"] == "text" => {
                    let text = first["text"].as_str().unwrap_or_default();
                    *first = text_part(&format!("Error: {text}"));
                }
                _ => parts.insert(0, text_part("Error")),
            }
        }
        Ok(content(parts))
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The content of a message: with images, a list of parts as templates know it, else one string.
fn content(parts: Vec<Value>) -> Value {
    let is_text = |part: &Value| part["type"] == "text";
    if !parts.iter().all(is_text) {
        return parts.into();
    }
    let texts = parts.iter().filter_map(|part| part["text"].as_str());
    texts.collect::<Vec<_>>().join("\n").into()
}

fn append_line(to: &mut Option<String>, text: &str) {
    match to {
        None => *to = Some(text.to_owned()),
        Some(before) => {
            before.push('\n');
            before.push_str(text);
        }
    }
}
