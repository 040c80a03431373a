//! A block of a turn of Anthropic's Messages, or of a result in one (specification 22.2).

use serde_json::{Map, Value, json};

use super::given::Given;
use super::images::ImageUrls;
use super::reader::{member, shorten};
use crate::{RequestFault, Result};

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

/// A block of a turn's content, or of a result's.
pub(super) struct Block<'a> {
    pub(super) turn: Given<'a>,
    /// The place of the block in the body, for messages.
    place: &'static str,
    pub(super) kind: &'a str,
    members: &'a Map<String, Value>,
}

impl<'a> Block<'a> {
    pub(super) fn new(
        turn: &Given<'a>,
        place: &'static str,
        given: &'a Value,
    ) -> Result<Block<'a>> {
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
    pub(super) fn string(&self, name: &str) -> Result<&'a str> {
        match member(self.members, name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
            None => Err(self.needs(name)),
        }
    }

    /// The error about a block of this type that `whose` content cannot have.
    pub(super) fn refused(&self, whose: &str) -> crate::Error {
        let kind = shorten(self.kind);
        if FOREIGN.contains(&self.kind) || self.kind == "image" {
            let reason = format!("blocks of type \"{kind}\" are not supported for {whose}");
            return self.turn.fault(RequestFault::UnsupportedParameter, reason);
        }
        let reason = format!("\"{kind}\" is not a type of a block of {whose}");
        self.turn.wrong(reason)
    }

    /// A text or an image as a part of a message.
    pub(super) fn part(&self, images: &mut ImageUrls) -> Result<Value> {
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
    pub(super) fn input(&self) -> Result<Value> {
        match member(self.members, "input") {
            Some(input @ Value::Object(_)) => Ok(input.clone()),
            Some(other) => Err(self.wrong_type("input", "an object", other)),
            None => Err(self.needs("input")),
        }
    }

    /// The content of a result. Templates have no place for `is_error`, so the text says it.
    pub(super) fn result(&self, images: &mut ImageUrls) -> Result<Value> {
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

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The content of a message: with images, a list of parts as templates know it, else one string.
pub(super) fn content(parts: Vec<Value>) -> Value {
    let is_text = |part: &Value| part["type"] == "text";
    if !parts.iter().all(is_text) {
        return parts.into();
    }
    let strings = parts.iter().filter_map(|part| part["text"].as_str());
    strings.collect::<Vec<_>>().join("\n").into()
}
