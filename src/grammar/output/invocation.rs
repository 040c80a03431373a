//! Calls that look like calls in a programming language: `[f(a="x", b=1)]` of LFM2 and Llama, `call:f{a:1}` of
//! Gemma.

use super::delivery::{Delivery, Status};
use super::json_text::{is_space, member_start};
use super::literal::{Literal, Reading};

/// The longest name of a function or a parameter.
const MAX_NAME_BYTES: usize = 256;

/// The marks with which a family writes calls.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::grammar) struct Invocation {
    pub open: &'static str,
    /// The string before the name; may be empty.
    pub before: &'static str,
    /// The characters around the arguments.
    pub brackets: (char, char),
    /// The character between a parameter and its value.
    pub assign: char,
    /// The string around strings, in place of quotes; may be empty.
    pub quote: &'static str,
    /// Whether the calls are a list in brackets.
    pub is_list: bool,
    pub close: &'static str,
}

/// A list of calls with Python's literals, between these marks.
const fn python(open: &'static str, close: &'static str) -> Invocation {
    Invocation {
        open,
        before: "",
        brackets: ('(', ')'),
        assign: '=',
        quote: "",
        is_list: true,
        close,
    }
}

/// A call of Gemma, between these marks, with `quote` around strings.
const fn gemma(open: &'static str, quote: &'static str, close: &'static str) -> Invocation {
    Invocation {
        open,
        before: "call:",
        brackets: ('{', '}'),
        assign: ':',
        quote,
        is_list: false,
        close,
    }
}

/// The calls of LFM2.
pub(in crate::grammar) static LFM2: Invocation = python("<|tool_call_start|>", "<|tool_call_end|>");

/// The calls of Llama 4 in tags.
pub(in crate::grammar) static LLAMA4: Invocation = python("<|python_start|>", "<|python_end|>");

/// The calls of Llama 3.2 and 4 without tags.
pub(in crate::grammar) static LLAMA: Invocation = python("[", "");

/// The calls of Gemma 4.
pub(in crate::grammar) static GEMMA4: Invocation = gemma("<|tool_call>", "<|\"|>", "<tool_call|>");

/// The calls of FunctionGemma.
pub(in crate::grammar) static FUNCTION_GEMMA: Invocation =
    gemma("<start_function_call>", "<escape>", "<end_function_call>");

impl Invocation {
    /// Whether `text` is the start of the string before a name, or that string and the start of a name.
    fn may_name(&self, text: &str) -> bool {
        self.before.starts_with(text) || text.strip_prefix(self.before).is_some_and(is_name)
    }
}

#[derive(Debug)]
enum State {
    /// The list comes next.
    List,
    /// The text before the name, or the name, as far as it has been read.
    Name(String),
    /// A parameter's name, or the end of the arguments.
    Key(String),
    Value(Literal),
    /// A value has ended.
    Next,
    /// A call of a list has ended.
    Between,
    /// The closing tag as far as it has been read.
    Close(String),
}

/// The body after the opening tag.
#[derive(Debug)]
pub(super) struct Invocations {
    form: &'static Invocation,
    state: State,
    parameters: usize,
    has_begun: bool,
}

impl Invocations {
    pub(super) fn new(form: &'static Invocation) -> Invocations {
        Invocations {
            form,
            state: match form.is_list {
                true => State::List,
                false => State::Name(String::new()),
            },
            parameters: 0,
            has_begun: false,
        }
    }

    pub(super) fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        let (open, close) = self.form.brackets;
        match &mut self.state {
            State::List | State::Next | State::Between if is_space(character) => {}
            State::Name(text) | State::Key(text) | State::Close(text)
                if text.is_empty() && is_space(character) => {}
            State::List if character == '[' => self.state = State::Name(String::new()),
            State::List => return Status::Failed,
            State::Name(name) if character == open => {
                let name = std::mem::take(name);
                return self.begin(&name, delivery);
            }
            State::Name(name) => {
                name.push(character);
                if !self.form.may_name(name) {
                    return Status::Failed;
                }
            }
            State::Key(key) if character == self.form.assign => {
                let key = key.trim_end().trim_matches(['"', '\'']);
                delivery.arguments(&member_start(key, self.parameters == 0));
                self.parameters += 1;
                self.state = State::Value(Literal::new(self.form.quote));
            }
            State::Key(key) if character == close && key.is_empty() => self.end(delivery),
            State::Key(key) => {
                key.push(character);
                if !is_name(key.trim_matches(['"', '\''])) {
                    return delivery.leave_call();
                }
            }
            State::Value(literal) => {
                let mut out = String::new();
                let reading = literal.feed(character, &mut out);
                delivery.arguments(&out);
                match reading {
                    Reading::Inside => delivery.settle(),
                    Reading::Last => self.state = State::Next,
                    Reading::After => {
                        self.state = State::Next;
                        return self.feed(character, delivery);
                    }
                    Reading::Wrong => return delivery.leave_call(),
                }
            }
            State::Next if character == ',' => self.state = State::Key(String::new()),
            State::Next if character == close => self.end(delivery),
            State::Next => return delivery.leave_call(),
            State::Between if character == ',' => self.state = State::Name(String::new()),
            State::Between if character == ']' => return self.end_list(),
            State::Between => return Status::Left,
            State::Close(tag) => {
                tag.push(character);
                if tag == self.form.close {
                    return Status::Done;
                } else if !self.form.close.starts_with(&*tag) {
                    return Status::Left;
                }
            }
        }
        Status::More
    }

    /// Starts the call of the tool whose name was read, with the string before it.
    fn begin(&mut self, name: &str, delivery: &mut Delivery) -> Status {
        let name = name.trim_end().strip_prefix(self.form.before);
        let Some(tool) = name.and_then(|name| delivery.tool(name)) else {
            return Status::Failed;
        };
        let name = tool.name.clone();
        delivery.start_call(&name);
        delivery.arguments("{");
        self.has_begun = true;
        self.parameters = 0;
        self.state = State::Key(String::new());
        Status::More
    }

    /// Ends the arguments of a call.
    fn end(&mut self, delivery: &mut Delivery) {
        delivery.arguments("}");
        self.state = match self.form.is_list {
            true => State::Between,
            false => State::Close(String::new()),
        };
    }

    /// Ends a list, after which its tag may come.
    fn end_list(&mut self) -> Status {
        self.state = State::Close(String::new());
        match self.form.close.is_empty() {
            true => Status::Done,
            false => Status::More,
        }
    }

    /// Same as [`super::json::JsonCalls::finish`].
    pub(super) fn finish(&mut self, delivery: &mut Delivery) -> bool {
        if let State::Value(literal) = &mut self.state {
            let mut out = String::new();
            literal.finish(&mut out);
            delivery.arguments(&out);
        }
        !matches!(self.state, State::Name(_) | State::Key(_)) && self.has_begun
    }
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || "_-. ".contains(c);
    text.len() <= MAX_NAME_BYTES && text.chars().all(fits)
}
