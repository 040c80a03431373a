//! The parts that a reader has found, and the text whose meaning is still open.

use std::rc::Rc;

use super::json_text::ValueEnd;
use crate::grammar::tool::Tool;

/// The most bytes that are held until it is clear whether they begin a call.
pub(super) const MAX_HELD_BYTES: usize = 8 << 10;

/// A piece of a model's output. A whole output is its pieces joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputPart {
    /// Text for the user.
    Content(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// A call begins.
    CallStart {
        /// Counts the calls of one output from 0.
        index: usize,
        /// The name of a declared tool.
        name: String,
    },
    /// The next piece of a call's arguments, which are JSON text.
    CallArguments {
        /// The call.
        index: usize,
        /// The piece of the arguments that follows those delivered before.
        json: String,
    },
}

/// The effect of a character on the reader of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The character belongs to the call.
    More,
    /// The character is the last one of the calls.
    Done,
    /// The calls ended before the held text, which is to be read as text.
    Left,
    /// The held text is no call.
    Failed,
}

/// The parts that have been found so far.
#[derive(Debug)]
pub(super) struct Delivery {
    tools: Rc<[Tool]>,
    parts: Vec<OutputPart>,
    /// Text that was read and not delivered.
    held: String,
    /// Calls that have begun.
    calls: usize,
}

impl Delivery {
    pub(super) fn new(tools: &[Tool]) -> Delivery {
        Delivery {
            tools: tools.into(),
            parts: Vec::new(),
            held: String::new(),
            calls: 0,
        }
    }

    /// The parts since the last call of this.
    pub(super) fn take(&mut self) -> Vec<OutputPart> {
        std::mem::take(&mut self.parts)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The name of the tool whose call begins with `text`: the only tool, or the last one whose whole name is in the text.
    pub(super) fn name_in(&self, text: &str, is_first: bool) -> Option<String> {
        if let ([tool], true) = (&*self.tools, is_first) {
            return Some(tool.name.clone());
        }
        // The key of a JSON object is no name.
        let text = match text.contains('{') {
            true => text.split_once("\"name\"").map_or(text, |(_, rest)| rest),
            false => text,
        };
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let mut words: Vec<&str> = text.split(|c| !is_name(c)).collect();
        // The last one may go on.
        words.pop();
        let tool = words.iter().rev().find_map(|word| self.tool(word))?;
        Some(tool.name.clone())
    }

    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    pub(super) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    pub(super) fn content(&mut self, text: &str) {
        if let Some(OutputPart::Content(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.parts.push(OutputPart::Content(text.to_owned()));
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        if let Some(OutputPart::Reasoning(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.parts.push(OutputPart::Reasoning(text.to_owned()));
        }
    }

    /// Begins a call of a declared tool. What was held belongs to it.
    pub(super) fn start_call(&mut self, name: &str) {
        self.held.clear();
        self.parts.push(OutputPart::CallStart {
            index: self.calls,
            name: name.to_owned(),
        });
        self.calls += 1;
    }

    /// Begins a call of a declared tool whose arguments begin with the brace that was read. Returns the search for their end.
    pub(super) fn start_object(&mut self, name: &str) -> ValueEnd {
        self.start_call(name);
        self.arguments("{");
        let mut value = ValueEnd::default();
        value.feed('{');
        value
    }

    /// Appends to the arguments of the last call. What was held belongs to them.
    pub(super) fn arguments(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.held.clear();
        if let Some(OutputPart::CallArguments { json, .. }) = self.parts.last_mut() {
            json.push_str(text);
        } else {
            self.parts.push(OutputPart::CallArguments {
                index: self.calls.saturating_sub(1),
                json: text.to_owned(),
            });
        }
    }

    /// Same as [`Self::arguments`], for one character.
    pub(super) fn argument(&mut self, character: char) {
        self.arguments(character.encode_utf8(&mut [0; 4]));
    }

    /// Holds a character. False if there are too many.
    pub(super) fn hold(&mut self, character: char) -> bool {
        self.held.push(character);
        self.held.len() <= MAX_HELD_BYTES
    }

    /// Drops the held text, which belongs to the form.
    pub(super) fn settle(&mut self) {
        self.held.clear();
    }

    /// The held text, which is no longer held.
    pub(super) fn release(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Ends the call with the arguments that it has, where it stops making sense. The held text is no part of it.
    pub(super) fn leave_call(&mut self) -> Status {
        let held = self.release();
        self.arguments("}");
        held.chars().for_each(|character| {
            self.hold(character);
        });
        Status::Left
    }
}
