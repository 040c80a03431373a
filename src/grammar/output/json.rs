//! Calls that are JSON objects: `{"name": ..., "arguments": {...}}`, alone, in a list, between tags.

use super::delivery::{Delivery, Status};
use super::json_text::{Place, Unescape, ValueEnd, is_space};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A `{` comes next.
    Open,
    /// A key or `}` comes next.
    Key,
    InKey,
    Colon,
    Value,
    InName,
    /// The arguments are being read.
    InObject,
    /// Arguments that are a JSON object in a JSON string are being read.
    InText,
    /// A member that is ignored is being read.
    InOther,
    Comma,
}

/// One object with the members `name` and `arguments` or `parameters`, in either order.
#[derive(Debug)]
struct ObjectCall {
    state: State,
    key: String,
    value: ValueEnd,
    /// The name, raw while it is read.
    name: String,
    has_name: bool,
    /// Arguments that came before the name.
    early: Option<String>,
    has_begun: bool,
    unescape: Unescape,
    /// Whether a call without arguments is one.
    may_lack_arguments: bool,
}

impl ObjectCall {
    fn new(may_lack_arguments: bool) -> ObjectCall {
        ObjectCall {
            state: State::Open,
            key: String::new(),
            value: ValueEnd::default(),
            name: String::new(),
            has_name: false,
            early: None,
            has_begun: false,
            unescape: Unescape::default(),
            may_lack_arguments,
        }
    }

    fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        let fails = match self.has_begun {
            true => Status::Left,
            false => Status::Failed,
        };
        let is_structure = !matches!(
            self.state,
            State::InKey | State::InName | State::InObject | State::InText | State::InOther
        );
        if is_structure && is_space(character) {
            return Status::More;
        }
        match (self.state, character) {
            (State::Open, '{') => self.state = State::Key,
            (State::Key, '"') => {
                self.key.clear();
                self.state = State::InKey;
            }
            (State::Key | State::Comma, '}') => return self.close(delivery, fails),
            (State::InKey, '"') => self.state = State::Colon,
            (State::InKey, _) => self.key.push(character),
            (State::Colon, ':') => self.state = State::Value,
            (State::Value, _) => return self.value(character, delivery, fails),
            (State::InName, _) => {
                self.name.push(character);
                if self.value.feed(character) == Place::Last {
                    return self.named(delivery);
                }
            }
            (State::InObject, _) => {
                self.argument(character, delivery);
                if self.value.feed(character) == Place::Last {
                    self.state = State::Comma;
                }
            }
            (State::InText, _) => return self.text(character, delivery),
            (State::InOther, _) => match self.value.feed(character) {
                Place::Inside if self.has_begun => delivery.settle(),
                Place::Inside => {}
                Place::Last => self.state = State::Comma,
                Place::After => {
                    self.state = State::Comma;
                    return self.feed(character, delivery);
                }
            },
            (State::Comma, ',') => self.state = State::Key,
            _ => return fails,
        }
        Status::More
    }

    /// The first character of a value.
    fn value(&mut self, character: char, delivery: &mut Delivery, fails: Status) -> Status {
        self.value = ValueEnd::default();
        self.value.feed(character);
        let is_arguments = matches!(self.key.as_str(), "arguments" | "parameters");
        let is_new = !self.has_begun && self.early.is_none();
        self.state = match character {
            '"' if self.key == "name" && !self.has_name => {
                self.name.push('"');
                State::InName
            }
            '{' | '"' if is_arguments && is_new => {
                if self.has_name {
                    self.begin(delivery);
                } else {
                    self.early = Some(String::new());
                }
                if character == '"' {
                    State::InText
                } else {
                    self.argument('{', delivery);
                    State::InObject
                }
            }
            '}' | ']' | ',' | ':' => return fails,
            _ if is_arguments && is_new => return fails,
            _ => State::InOther,
        };
        Status::More
    }

    fn begin(&mut self, delivery: &mut Delivery) {
        delivery.start_call(&self.name);
        self.has_begun = true;
    }

    fn named(&mut self, delivery: &mut Delivery) -> Status {
        let Ok(name) = serde_json::from_str::<String>(&self.name) else {
            return Status::Failed;
        };
        if delivery.tool(&name).is_none() {
            return Status::Failed;
        }
        self.name = name;
        self.has_name = true;
        self.state = State::Comma;
        if let Some(early) = self.early.take() {
            self.begin(delivery);
            delivery.arguments(&early);
        }
        Status::More
    }

    fn argument(&mut self, character: char, delivery: &mut Delivery) {
        match &mut self.early {
            Some(early) => early.push(character),
            None => delivery.argument(character),
        }
    }

    /// A character of arguments in a string.
    fn text(&mut self, character: char, delivery: &mut Delivery) -> Status {
        let mut decoded = String::new();
        let is_last = self.value.feed(character) == Place::Last;
        if is_last {
            self.unescape.finish(&mut decoded);
            self.state = State::Comma;
        } else {
            self.unescape.feed(character, &mut decoded);
        }
        for character in decoded.chars() {
            self.argument(character, delivery);
        }
        Status::More
    }

    /// The object's end.
    fn close(&mut self, delivery: &mut Delivery, fails: Status) -> Status {
        if !self.has_begun {
            if !self.has_name || !self.may_lack_arguments {
                return fails;
            }
            self.begin(delivery);
            delivery.arguments("{}");
        }
        delivery.settle();
        Status::Done
    }

    /// The output ends.
    fn finish(&mut self, delivery: &mut Delivery) {
        if self.state == State::InText && self.has_begun {
            let mut rest = String::new();
            self.unescape.finish(&mut rest);
            delivery.arguments(&rest);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// The position is before the object or the list.
    Before,
    /// The position is in an object, or before one.
    Object,
    /// The position is between the objects of a list.
    Between,
    /// The position is after the object or the list.
    After,
}

/// Objects between an opening text, which has been read, and a closing one, which may be empty.
#[derive(Debug)]
pub(super) struct JsonCalls {
    closer: &'static str,
    around: Around,
    is_list: bool,
    object: ObjectCall,
    /// Characters of the closer that have been read.
    closed: String,
}

impl JsonCalls {
    pub(super) fn new(closer: &'static str, may_lack_arguments: bool) -> JsonCalls {
        JsonCalls {
            closer,
            around: Around::Before,
            is_list: false,
            object: ObjectCall::new(may_lack_arguments),
            closed: String::new(),
        }
    }

    pub(super) fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        match self.around {
            Around::Before if is_space(character) => Status::More,
            Around::Before if character == '[' && !self.is_list => {
                self.is_list = true;
                Status::More
            }
            Around::Before if character == '{' => {
                self.around = Around::Object;
                self.object.feed(character, delivery)
            }
            Around::Before => Status::Failed,
            Around::Object => match self.object.feed(character, delivery) {
                Status::Done => {
                    self.object = ObjectCall::new(self.object.may_lack_arguments);
                    self.around = match self.is_list {
                        true => Around::Between,
                        false => Around::After,
                    };
                    Status::More
                }
                status => status,
            },
            Around::Between => match character {
                _ if is_space(character) => Status::More,
                ',' => {
                    self.around = Around::Object;
                    Status::More
                }
                ']' => {
                    delivery.settle();
                    self.around = Around::After;
                    match self.closer.is_empty() {
                        true => Status::Done,
                        false => Status::More,
                    }
                }
                _ => Status::Left,
            },
            Around::After => self.after(character),
        }
    }

    fn after(&mut self, character: char) -> Status {
        if self.closed.is_empty() && is_space(character) {
            return Status::More;
        }
        if self.closer.is_empty() {
            // Several calls without tags follow each other, with or without a separator.
            return match character {
                ';' | ',' if self.closed.is_empty() => {
                    self.closed.push(character);
                    Status::More
                }
                _ if is_space(character) => Status::More,
                '{' => {
                    self.closed.clear();
                    self.around = Around::Object;
                    self.object.state = State::Key;
                    Status::More
                }
                _ => Status::Left,
            };
        }
        self.closed.push(character);
        if self.closed == self.closer {
            Status::Done
        } else if self.closer.starts_with(&self.closed) {
            Status::More
        } else {
            Status::Left
        }
    }

    /// The output ends. Whether the held text belongs to calls that were delivered.
    pub(super) fn finish(&mut self, delivery: &mut Delivery) -> bool {
        self.object.finish(delivery);
        match self.around {
            Around::Before => false,
            Around::Object => self.object.has_begun,
            Around::Between => true,
            Around::After => self.closed.is_empty() || !self.closer.is_empty(),
        }
    }
}
