//! Objects of a list in a request, such as messages: their members, their content as text, and the calls in them
//! (specification 18.2). Which objects a route takes is the concern of `conversation` and `input`.

use serde_json::{Map, Value, json};

use super::images::ImageUrls;
use super::reader::{describe, invalid_type, member, shorten};
use crate::api::error::fault;
use crate::{Error, RequestFault, Result};

/// Types of parts with an image.
const IMAGES: &[&str] = &["image_url", "input_image"];

/// One object of the list in the field `field`.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub field: &'static str,
    pub index: usize,
    pub members: &'a Map<String, Value>,
}

impl<'a> Given<'a> {
    pub(super) fn new(field: &'static str, index: usize, given: &'a Value) -> Result<Given<'a>> {
        let members = given.as_object();
        Ok(Given {
            field,
            index,
            members: members.ok_or_else(|| invalid_type(field, "an array of objects", given))?,
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        member(self.members, name)
    }

    pub(super) fn fault(&self, kind: RequestFault, reason: impl std::fmt::Display) -> Error {
        let message = format!("{}[{}]: {reason}", self.field, self.index);
        fault(kind, self.field, message)
    }

    pub(super) fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        self.fault(RequestFault::InvalidValue, reason)
    }

    pub(super) fn wrong_type(&self, name: &str, expected: &str, value: &Value) -> Error {
        let (field, index) = (self.field, self.index);
        let message = format!(
            "{field}[{index}].{name} must be {expected}, not {}",
            describe(value)
        );
        fault(RequestFault::InvalidType, field, message)
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        let (field, index) = (self.field, self.index);
        let message = format!("{field}[{index}] needs the member \"{name}\"");
        fault(RequestFault::MissingRequiredParameter, field, message)
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }

    pub(super) fn required_string(&self, name: &str) -> Result<&'a str> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    /// The content of a message: a string, or parts. The text of all parts is joined by newlines; with images, they become
    /// a list of parts as templates know it. The images are appended to `images`.
    pub(super) fn content(&self, name: &str, images: &mut ImageUrls) -> Result<Option<Value>> {
        let is_image = |part: &Value| {
            let kind = part.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| IMAGES.contains(&kind))
        };
        let parts = match self.get(name) {
            Some(Value::Array(parts)) if parts.iter().any(is_image) => parts,
            _ => return Ok(self.text(name)?.map(Value::String)),
        };
        let part = |part: &'a Value| match is_image(part) {
            true => {
                self.image(name, part, images)?;
                Ok(json!({"type": "image"}))
            }
            false => Ok(json!({"type": "text", "text": self.part_text(name, part)?})),
        };
        let parts = parts.iter().map(part).collect::<Result<Vec<_>>>()?;
        Ok(Some(parts.into()))
    }

    /// The image of a part: `{"image_url": URL}` or `{"image_url": {"url": URL}}`.
    fn image(&self, name: &str, part: &Value, images: &mut ImageUrls) -> Result<()> {
        let given = part.get("image_url").filter(|given| !given.is_null());
        let Some(given) = given else {
            return Err(match part.get("file_id") {
                Some(_) => {
                    let reason = "file_id is not supported: no files are stored";
                    self.fault(RequestFault::UnsupportedParameter, reason)
                }
                None => self.wrong(format!("a part of {name} needs image_url")),
            });
        };
        let url = given.get("url").unwrap_or(given);
        let Some(url) = url.as_str() else {
            let member = format!("{name}[].image_url");
            return Err(self.wrong_type(&member, "a URL or an object with a url", url));
        };
        let pushed = images.push(url);
        pushed.map_err(|reason| self.wrong(format!("image_url: {reason}")))
    }

    /// A string, or parts whose text is joined by newlines.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        let parts = match self.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => return Ok(Some(text.clone())),
            Some(Value::Array(parts)) => parts,
            Some(other) => return Err(self.wrong_type(name, "a string or an array", other)),
        };
        let strings = parts.iter().map(|part| self.part_text(name, part));
        Ok(Some(strings.collect::<Result<Vec<_>>>()?.join("\n")))
    }

    /// The text of a part.
    pub(super) fn part_text(&self, name: &str, part: &'a Value) -> Result<&'a str> {
        let kind = part.get("type").and_then(Value::as_str);
        let kind = kind.ok_or_else(|| self.wrong(format!("a part of {name} needs a type")))?;
        let member = match kind {
            "text" | "input_text" | "output_text" => "text",
            "refusal" => "refusal",
            _ if IMAGES.contains(&kind) => {
                let reason = format!("images are not supported in this {name}");
                return Err(self.fault(RequestFault::UnsupportedParameter, reason));
            }
            "input_audio" | "input_file" | "audio_url" | "video_url" | "file" => {
                let reason =
                    format!("models take text and images, but a part is of type \"{kind}\"");
                return Err(self.fault(RequestFault::UnsupportedParameter, reason));
            }
            other => {
                let kind = shorten(other);
                return Err(self.wrong(format!("\"{kind}\" is not a known type of a part")));
            }
        };
        match part.get(member) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(self.wrong_type(&format!("{name}[].{member}"), "a string", other)),
            None => Err(self.wrong(format!("a part of type \"{kind}\" needs {member}"))),
        }
    }
}

/// A call in the form that templates know.
pub(super) fn call(name: &str, arguments: Value) -> Value {
    json!({"type": "function", "function": {"name": name, "arguments": arguments}})
}

/// The result of a call in the form that templates know.
pub(super) fn result(id: &str, name: &str, content: Value) -> Value {
    json!({"role": "tool", "content": content, "name": name, "tool_call_id": id})
}

/// Arguments that are the text of an object become that object: templates walk through it.
pub(super) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(arguments) => Value::Object(arguments),
        Err(_) => Value::String(text.to_owned()),
    }
}
