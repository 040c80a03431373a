//! `system` and `messages` of Anthropic's Messages: from turns of blocks to the messages that chat templates know
//! (specification 22.2). The fields about the answer are the concern of the route.

use serde_json::{Value, json};

use super::block::{Block, content, text_part};
use super::conversation::Conversation;
use super::declare::{Field, fields, wire_types};
use super::given::{Given, call, result};
use super::images::{ImageUrls, RequestImages};
use super::input::Turn;
use super::kinds::{Shape, shape};
use super::reader::{Fields, invalid_type, invalid_value, missing, shorten};
use crate::Result;
use crate::api::switches::Switches;
use crate::text::LocalTime;

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
        /// The reasoning of the assistant.
        #[ts(optional_fields = nullable)]
        Thinking {
            thinking: String,
            signature: Option<String>,
        },
        /// Not used.
        RedactedThinking { data: String },
    }

    /// The place of an image.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum MessageImageSource {
        Base64 { media_type: String, data: String },
        /// A data URL; in a page with the switch `remoteImages` also others.
        Url { url: String },
    }
}

const MESSAGES: &str = TurnFields::messages.name;
const SYSTEM: &str = TurnFields::system.name;

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
            let strings = blocks.iter().enumerate().map(text);
            strings.collect::<Result<Vec<_>>>()?.join("\n")
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
        let result = result(id, name, block.result(&mut self.images)?);
        self.close_user();
        self.done.push(result);
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

fn append_line(to: &mut Option<String>, text: &str) {
    match to {
        None => *to = Some(text.to_owned()),
        Some(before) => {
            before.push('\n');
            before.push_str(text);
        }
    }
}
