//! Calls whose parameters are in tags of their own, as Qwen3-Coder, GLM and MiniCPM write them. Values are
//! text; the schema of the tool's parameters says which are strings.

use super::delivery::{Delivery, Status};
use super::json_text::{is_space, member_start, push_escaped};
use super::values::Types;

/// The value of a parameter that is no string is kept up to this size; a longer one is a string.
const MAX_VALUE_BYTES: usize = 64 << 10;
/// The longest name of a function or a parameter.
const MAX_NAME_BYTES: usize = 256;
/// The text before a value that has tags in it.
pub(in crate::grammar) const CDATA_OPEN: &str = "<![CDATA[";
/// The text after such a value.
const CDATA_CLOSE: &str = "]]>";

/// The tags of a family.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::grammar) struct Markup {
    /// Opens a call, before [`Self::name_open`]; may be empty.
    pub open: &'static str,
    pub name_open: &'static str,
    /// The end of a name; if it is empty, white space or a tag ends the name.
    pub name_close: &'static str,
    pub key_open: &'static str,
    pub key_close: &'static str,
    /// May be empty.
    pub value_open: &'static str,
    pub value_close: &'static str,
    /// Closes the call.
    pub close: &'static str,
    /// Follows [`Self::close`]; may be empty or missing.
    pub block_close: &'static str,
    /// Whether a newline after the key and one before the end of the value belong to the tags.
    pub has_lines: bool,
    /// Whether a value may be in CDATA.
    pub has_data: bool,
}

/// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.
pub(in crate::grammar) static QWEN: Markup = Markup {
    open: "<tool_call>",
    name_open: "<function=",
    name_close: ">",
    key_open: "<parameter=",
    key_close: ">",
    value_open: "",
    value_close: "</parameter>",
    close: "</function>",
    block_close: "</tool_call>",
    has_lines: true,
    has_data: false,
};

/// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`.
pub(in crate::grammar) static GLM: Markup = Markup {
    open: "<tool_call>",
    name_open: "",
    name_close: "",
    key_open: "<arg_key>",
    key_close: "</arg_key>",
    value_open: "<arg_value>",
    value_close: "</arg_value>",
    close: "</tool_call>",
    block_close: "",
    has_lines: false,
    has_data: false,
};

/// `<function name="NAME"><param name="KEY">VALUE</param></function>`.
pub(in crate::grammar) static MINICPM: Markup = Markup {
    open: "",
    name_open: "<function name=\"",
    name_close: "\">",
    key_open: "<param name=\"",
    key_close: "\">",
    value_open: "",
    value_close: "</param>",
    close: "</function>",
    block_close: "",
    has_lines: false,
    has_data: true,
};

#[derive(Debug)]
enum State {
    /// The text before the name as far as it has been read.
    NameOpen(String),
    Name(String),
    /// The tag that opens a parameter or closes the call, as far as it has been read.
    Between(String),
    Key(String),
    /// The tag before the value as far as it has been read.
    ValueOpen(String),
    Value(Value),
    /// The tag that follows the call, as far as it has been read.
    BlockClose(String),
}

#[derive(Debug)]
struct Value {
    /// Text that may be the beginning of the end of the value, or of CDATA at its start.
    pending: String,
    is_start: bool,
    is_data: bool,
    /// The text of a value that may be other than a string.
    text: Option<(String, Types)>,
}

/// The body of one call.
#[derive(Debug)]
pub(super) struct MarkupCall {
    markup: &'static Markup,
    state: State,
    name: String,
    /// The parameter that is read.
    key: String,
    parameters: usize,
}

impl MarkupCall {
    /// The reader after the tag `opener`, which is the family's first or the one before the name.
    pub(super) fn new(markup: &'static Markup, opener: &str) -> MarkupCall {
        let state = match opener == markup.name_open {
            true => State::Name(String::new()),
            false => State::NameOpen(String::new()),
        };
        MarkupCall {
            markup,
            state,
            name: String::new(),
            key: String::new(),
            parameters: 0,
        }
    }

    pub(super) fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        match &mut self.state {
            State::NameOpen(tag)
            | State::Between(tag)
            | State::ValueOpen(tag)
            | State::BlockClose(tag)
                if tag.is_empty() && is_space(character) =>
            {
                return Status::More;
            }
            State::NameOpen(tag) => {
                tag.push(character);
                if self.markup.name_open.is_empty() {
                    self.state = State::Name(character.into());
                } else if tag == self.markup.name_open {
                    self.state = State::Name(String::new());
                } else if !self.markup.name_open.starts_with(&*tag) {
                    return Status::Failed;
                }
            }
            State::Name(name) => {
                let name = std::mem::take(name);
                return self.feed_name(name, character, delivery);
            }
            State::Between(tag) => {
                let tag = std::mem::take(tag);
                return self.feed_between(tag, character, delivery);
            }
            State::Key(key) => {
                let key = std::mem::take(key);
                return self.feed_key(key, character, delivery);
            }
            State::ValueOpen(tag) => {
                tag.push(character);
                if tag == self.markup.value_open {
                    self.open_value(delivery);
                } else if !self.markup.value_open.starts_with(&*tag) {
                    return delivery.leave_call();
                }
            }
            State::Value(value) => {
                if value.feed(character, self.markup, delivery) {
                    self.state = State::Between(String::new());
                }
            }
            State::BlockClose(tag) => {
                tag.push(character);
                if tag == self.markup.block_close {
                    return Status::Done;
                } else if !self.markup.block_close.starts_with(&*tag) {
                    return Status::Left;
                }
            }
        }
        Status::More
    }

    /// Takes a character after `name`, the part of the function's name that has been read.
    fn feed_name(&mut self, mut name: String, character: char, delivery: &mut Delivery) -> Status {
        let close = self.markup.name_close;
        if close.is_empty() && (is_space(character) || character == '<') {
            let status = self.begin(&name, delivery);
            return match status == Status::More && character == '<' {
                true => self.feed(character, delivery),
                false => status,
            };
        }
        name.push(character);
        if let Some(name) = name.strip_suffix(close).filter(|_| !close.is_empty()) {
            return self.begin(name.trim(), delivery);
        }
        if name.len() > MAX_NAME_BYTES || name.contains(['<', '\n']) {
            return Status::Failed;
        }
        self.state = State::Name(name);
        Status::More
    }

    /// Takes a character after `tag`, the part that has been read of a tag that opens a parameter or closes the call.
    fn feed_between(
        &mut self,
        mut tag: String,
        character: char,
        delivery: &mut Delivery,
    ) -> Status {
        let markup = self.markup;
        tag.push(character);
        if tag == markup.key_open {
            self.state = State::Key(String::new());
        } else if tag == markup.close {
            delivery.arguments("}");
            if markup.block_close.is_empty() {
                return Status::Done;
            }
            self.state = State::BlockClose(String::new());
        } else if markup.key_open.starts_with(&tag) || markup.close.starts_with(&tag) {
            self.state = State::Between(tag);
        } else {
            return delivery.leave_call();
        }
        Status::More
    }

    /// Takes a character after `key`, the part of the parameter's name that has been read.
    fn feed_key(&mut self, mut key: String, character: char, delivery: &mut Delivery) -> Status {
        key.push(character);
        if let Some(key) = key.strip_suffix(self.markup.key_close) {
            self.key = key.trim().to_owned();
            match self.markup.value_open.is_empty() {
                true => self.open_value(delivery),
                false => self.state = State::ValueOpen(String::new()),
            }
            return Status::More;
        }
        if key.len() > MAX_NAME_BYTES {
            return delivery.leave_call();
        }
        self.state = State::Key(key);
        Status::More
    }

    fn begin(&mut self, name: &str, delivery: &mut Delivery) -> Status {
        if delivery.tool(name).is_none() {
            return Status::Failed;
        }
        delivery.start_call(name);
        delivery.arguments("{");
        self.name = name.to_owned();
        self.state = State::Between(String::new());
        Status::More
    }

    fn open_value(&mut self, delivery: &mut Delivery) {
        let mut out = member_start(&self.key, self.parameters == 0);
        self.parameters += 1;
        let tool = delivery.tool(&self.name);
        let parameters = tool.and_then(|tool| tool.parameters.as_ref());
        let types = Types::of_parameter(parameters, &self.key);
        let text = (!types.is_text()).then(|| (String::new(), types));
        if text.is_none() {
            out.push('"');
        }
        delivery.arguments(&out);
        self.state = State::Value(Value {
            pending: String::new(),
            is_start: true,
            is_data: false,
            text,
        });
    }

    /// Same as [`super::json::JsonCalls::finish`].
    pub(super) fn finish(&mut self, delivery: &mut Delivery) -> bool {
        if let State::Value(value) = &mut self.state {
            value.finish(delivery);
        }
        !matches!(
            self.state,
            State::NameOpen(_) | State::Name(_) | State::Key(_) | State::ValueOpen(_)
        )
    }
}

impl Value {
    /// Whether the character ends the value.
    fn feed(&mut self, character: char, markup: &Markup, delivery: &mut Delivery) -> bool {
        self.pending.push(character);
        delivery.settle();
        if self.is_start {
            if markup.has_lines && self.pending == "\n" {
                self.pending.clear();
                self.is_start = false;
                return false;
            }
            if markup.has_data && CDATA_OPEN.starts_with(&self.pending) {
                if self.pending == CDATA_OPEN {
                    self.pending.clear();
                    self.is_start = false;
                    self.is_data = true;
                }
                return false;
            }
            self.is_start = false;
        }
        while !self.pending.is_empty() {
            let pending = self.pending.as_str();
            let (before, rest) = match self.is_data {
                true => (CDATA_CLOSE, pending.strip_prefix(CDATA_CLOSE)),
                false if markup.has_lines => ("\n", pending.strip_prefix('\n')),
                false => ("", None),
            };
            let may_end = match rest {
                Some(rest) => markup.value_close.starts_with(rest),
                None => before.starts_with(pending),
            };
            let is_end =
                rest == Some(markup.value_close) || !self.is_data && pending == markup.value_close;
            if is_end {
                self.close(delivery);
                return true;
            }
            if may_end || !self.is_data && markup.value_close.starts_with(pending) {
                return false;
            }
            let first = self.pending.remove(0);
            self.push(first, delivery);
        }
        false
    }

    fn push(&mut self, character: char, delivery: &mut Delivery) {
        if let Some((text, _)) = &mut self.text {
            text.push(character);
            if text.len() <= MAX_VALUE_BYTES {
                return;
            }
            let mut out = "\"".to_owned();
            text.chars().for_each(|c| push_escaped(c, &mut out));
            self.text = None;
            delivery.arguments(&out);
        } else {
            let mut out = String::new();
            push_escaped(character, &mut out);
            delivery.arguments(&out);
        }
    }

    fn close(&mut self, delivery: &mut Delivery) {
        match &self.text {
            Some((text, types)) => delivery.arguments(&types.to_json(text)),
            None => delivery.arguments("\""),
        }
    }

    /// The output ends inside the value.
    fn finish(&mut self, delivery: &mut Delivery) {
        for character in std::mem::take(&mut self.pending).chars() {
            self.push(character, delivery);
        }
        if let Some((text, _)) = self.text.take() {
            delivery.arguments(&text);
        }
    }
}
