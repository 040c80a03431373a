//! The messages of gpt-oss: a header with a channel and a recipient, then text.

use super::delivery::{Delivery, MAX_HELD_BYTES};
use super::json_text::{Place, ValueEnd, is_space};

pub(in crate::grammar) const START: &str = "<|start|>";
pub(in crate::grammar) const CHANNEL: &str = "<|channel|>";
pub(in crate::grammar) const MESSAGE: &str = "<|message|>";
pub(in crate::grammar) const CONSTRAIN: &str = "<|constrain|>";
pub(in crate::grammar) const END: &str = "<|end|>";
pub(in crate::grammar) const CALL: &str = "<|call|>";
pub(in crate::grammar) const RETURN: &str = "<|return|>";

#[derive(Debug)]
enum State {
    /// The header of a message, up to `<|message|>`, as far as it has been read.
    Header(String),
    /// A message has ended.
    Between,
    Content,
    Reasoning,
    /// A call whose arguments have not begun; its text.
    Opening {
        name: String,
        text: String,
    },
    Arguments(ValueEnd),
    /// The arguments have ended.
    Closed,
}

/// The role in a header of the model's.
const ROLE: &str = "assistant";

/// The header without the role, which the prompt may have written.
fn without_role(header: &str) -> &str {
    header.strip_prefix(ROLE).unwrap_or(header)
}

/// Whether a text may be the beginning of a header: the role, a recipient, a channel.
fn is_header(text: &str) -> bool {
    let rest = without_role(text).trim_start();
    let is_recipient = rest.starts_with(RECIPIENT) || RECIPIENT.starts_with(rest);
    let is_header = is_recipient || ROLE.starts_with(text) || rest.contains(CHANNEL);
    is_header && text.len() <= MAX_HELD_BYTES
}

/// The text before the recipient in a header.
const RECIPIENT: &str = "to=";

/// Reads a whole output.
#[derive(Debug)]
pub(super) struct Harmony {
    state: State,
    /// Text that may be the beginning of a tag.
    pending: String,
    delivery: Delivery,
}

impl Harmony {
    pub(super) fn new(delivery: Delivery, prompt_tail: &str) -> Harmony {
        let mut reader = Harmony {
            state: State::Between,
            pending: String::new(),
            delivery,
        };
        // The prompt may end inside a header or a message.
        if let Some(start) = prompt_tail.rfind(START) {
            for character in prompt_tail[start..].chars() {
                reader.feed(character);
            }
            reader.delivery.take();
        }
        reader
    }

    pub(super) fn delivery(&mut self) -> &mut Delivery {
        &mut self.delivery
    }

    pub(super) fn feed(&mut self, character: char) {
        self.pending.push(character);
        while !self.pending.is_empty() {
            let tags: &[&str] = match self.state {
                State::Header(_) => &[CHANNEL, MESSAGE, CONSTRAIN, START, END, CALL, RETURN],
                _ => &[START, CHANNEL, END, CALL, RETURN],
            };
            if let Some(tag) = tags.iter().find(|tag| **tag == self.pending) {
                self.pending.clear();
                return self.tag(tag);
            }
            if tags.iter().any(|tag| tag.starts_with(&self.pending)) {
                return;
            }
            let first = self.pending.remove(0);
            self.text(first);
        }
    }

    fn tag(&mut self, tag: &str) {
        if let State::Header(header) = &mut self.state {
            match tag {
                MESSAGE => {
                    let header = std::mem::take(header);
                    self.state = self.message(&header);
                    return;
                }
                CHANNEL | CONSTRAIN => {
                    header.push_str(tag);
                    return;
                }
                _ => {}
            }
        }
        self.end_message();
        self.state = match tag {
            START => State::Header(String::new()),
            CHANNEL => State::Header(CHANNEL.to_owned()),
            _ => State::Between,
        };
    }

    /// The state for a message with this header.
    fn message(&self, header: &str) -> State {
        let recipient = header.split_once(RECIPIENT).map(|(_, rest)| {
            let end = rest.find(|c: char| is_space(c) || c == '<');
            &rest[..end.unwrap_or(rest.len())]
        });
        let channel = header.split_once(CHANNEL).map_or("", |(_, rest)| rest);
        let name = recipient.map(|name| name.strip_prefix("functions.").unwrap_or(name));
        match name.filter(|name| self.delivery.tool(name).is_some()) {
            Some(name) => State::Opening {
                name: name.to_owned(),
                text: String::new(),
            },
            None if channel.trim_start().starts_with("analysis") => State::Reasoning,
            None => State::Content,
        }
    }

    fn text(&mut self, character: char) {
        let mut buffer = [0; 4];
        let text = &*character.encode_utf8(&mut buffer);
        match &mut self.state {
            State::Header(header) => {
                header.push(character);
                if !is_header(header) {
                    let header = std::mem::take(header);
                    self.delivery.content(without_role(&header));
                    self.state = State::Content;
                }
            }
            State::Between => {
                if !is_space(character) {
                    self.delivery.content(text);
                    self.state = State::Content;
                }
            }
            State::Content => self.delivery.content(text),
            State::Reasoning => self.delivery.reasoning(text),
            State::Opening { name, text } => {
                if character == '{' {
                    self.state = State::Arguments(self.delivery.start_object(name));
                    return;
                }
                text.push(character);
                if !is_space(character) || text.len() > MAX_HELD_BYTES {
                    let text = std::mem::take(text);
                    self.delivery.content(&text);
                    self.state = State::Content;
                }
            }
            State::Arguments(value) => {
                self.delivery.argument(character);
                if value.feed(character) == Place::Last {
                    self.state = State::Closed;
                }
            }
            State::Closed => {
                if !is_space(character) {
                    self.delivery.content(text);
                    self.state = State::Content;
                }
            }
        }
    }

    /// A header that no message follows is text.
    fn end_message(&mut self) {
        if let State::Header(header) = &mut self.state {
            let header = std::mem::take(header);
            if !ROLE.starts_with(&header) {
                self.delivery.content(without_role(&header));
            }
        }
    }

    pub(super) fn finish(&mut self) {
        for character in std::mem::take(&mut self.pending).chars() {
            self.text(character);
        }
        self.end_message();
        self.state = State::Between;
    }
}
