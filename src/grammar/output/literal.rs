//! Literals of Python and of Gemma's calls, rewritten as JSON while they are read.

use serde::de::IgnoredAny;

use super::json_text::{Unescape, is_space, push_escaped};

/// Deepest nesting.
const MAX_DEPTH: usize = 128;

/// The longest number or bare word.
const MAX_WORD_BYTES: usize = 1024;

/// The place of a character in relation to a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The character belongs to the literal.
    Inside,
    /// The character is the last one of the literal.
    Last,
    /// The character follows the literal.
    After,
    /// The character cannot follow the text so far in a literal.
    Wrong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    List,
    /// The colon of an entry has not been read.
    Keys,
    /// The colon of an entry has been read.
    Values,
}

#[derive(Debug)]
enum State {
    /// A value comes next; in a list or a dictionary its end may come, too.
    Value,
    /// A string that this character ends is being read.
    String(char, Unescape),
    /// A string that a tag ends is being read. The part of the tag that has been read.
    Tagged(String),
    /// The tag that opens a string, as far as it has been read.
    Tag(String),
    /// A number, `True`, a bare key.
    Word(String),
    /// A value inside a container has ended.
    Next,
}

/// Reads one literal. Strings are in single or double quotes; Gemma's are in `quote` instead. JSON is
/// read, too.
#[derive(Debug)]
pub(super) struct Literal {
    quote: &'static str,
    containers: Vec<Container>,
    state: State,
}

impl Literal {
    /// `quote` may be empty.
    pub(super) fn new(quote: &'static str) -> Literal {
        Literal {
            quote,
            containers: Vec::new(),
            state: State::Value,
        }
    }

    /// Appends JSON text to `out`.
    pub(super) fn feed(&mut self, character: char, out: &mut String) -> Reading {
        match &mut self.state {
            State::Value | State::Next if is_space(character) => Reading::Inside,
            State::Value => self.value(character, out),
            State::Tag(tag) => {
                tag.push(character);
                if tag == self.quote {
                    out.push('"');
                    self.state = State::Tagged(String::new());
                } else if !self.quote.starts_with(&*tag) {
                    return Reading::Wrong;
                }
                Reading::Inside
            }
            State::Tagged(tag) => {
                tag.push(character);
                if tag == self.quote {
                    out.push('"');
                    return self.ended();
                }
                while !self.quote.starts_with(&*tag) {
                    push_escaped(tag.remove(0), out);
                }
                Reading::Inside
            }
            State::String(quote, unescape) => {
                let mut decoded = String::new();
                let is_last = unescape.feed_python(character, *quote, &mut decoded);
                decoded.chars().for_each(|c| push_escaped(c, out));
                if is_last {
                    out.push('"');
                    return self.ended();
                }
                Reading::Inside
            }
            State::Word(word) => {
                let ends = ",:]})".contains(character) || is_space(character);
                if !ends {
                    word.push(character);
                    let is_wrong = "\"'([{=".contains(character) || word.len() > MAX_WORD_BYTES;
                    return match is_wrong {
                        true => Reading::Wrong,
                        false => Reading::Inside,
                    };
                }
                let is_key = self.containers.last() == Some(&Container::Keys);
                push_word(word, is_key, out);
                match self.ended() {
                    Reading::Last => Reading::After,
                    _ => self.feed(character, out),
                }
            }
            State::Next => self.next(character, out),
        }
    }

    fn value(&mut self, character: char, out: &mut String) -> Reading {
        let ends = match self.containers.last() {
            Some(Container::List) => "])".contains(character),
            Some(Container::Keys) => character == '}',
            _ => false,
        };
        if ends {
            return self.close(out);
        }
        self.state = match character {
            '"' | '\'' => {
                out.push('"');
                State::String(character, Unescape::default())
            }
            _ if self.quote.starts_with(character) => State::Tag(character.into()),
            '[' | '(' | '{' => {
                let is_key = self.containers.last() == Some(&Container::Keys);
                if is_key || self.containers.len() == MAX_DEPTH {
                    return Reading::Wrong;
                }
                out.push(if character == '{' { '{' } else { '[' });
                self.containers.push(match character {
                    '{' => Container::Keys,
                    _ => Container::List,
                });
                State::Value
            }
            ',' | ':' | ']' | '}' | ')' | '=' => return Reading::Wrong,
            _ => State::Word(character.into()),
        };
        Reading::Inside
    }

    /// Reads a character after a value in a container.
    fn next(&mut self, character: char, out: &mut String) -> Reading {
        let Some(container) = self.containers.last_mut() else {
            return Reading::Wrong;
        };
        match (*container, character) {
            (Container::Keys, ':') => {
                *container = Container::Values;
                out.push_str(": ");
            }
            (Container::Values, ',') => {
                *container = Container::Keys;
                out.push_str(", ");
            }
            (Container::List, ',') => out.push_str(", "),
            (Container::List, ']' | ')') | (Container::Values, '}') => return self.close(out),
            _ => return Reading::Wrong,
        }
        self.state = State::Value;
        Reading::Inside
    }

    fn close(&mut self, out: &mut String) -> Reading {
        // A comma may stand before the end.
        if out.ends_with(", ") {
            out.truncate(out.len() - 2);
        }
        match self.containers.pop() {
            Some(Container::List) => out.push(']'),
            _ => out.push('}'),
        }
        self.ended()
    }

    fn ended(&mut self) -> Reading {
        self.state = State::Next;
        match self.containers.is_empty() {
            true => Reading::Last,
            false => Reading::Inside,
        }
    }

    /// The output ends.
    pub(super) fn finish(&mut self, out: &mut String) {
        match &mut self.state {
            State::Word(word) => push_word(word, false, out),
            State::Tagged(tag) => tag.chars().for_each(|c| push_escaped(c, out)),
            State::String(_, unescape) => {
                let mut rest = String::new();
                unescape.finish(&mut rest);
                rest.chars().for_each(|c| push_escaped(c, out));
            }
            State::Value | State::Tag(_) | State::Next => {}
        }
    }
}

/// The JSON value of a whole literal.
pub(super) fn whole(text: &str) -> Option<String> {
    let mut literal = Literal::new("");
    let mut out = String::new();
    let mut is_over = false;
    for character in text.chars() {
        if is_over && !is_space(character) {
            return None;
        }
        if !is_over {
            match literal.feed(character, &mut out) {
                Reading::Inside => {}
                Reading::Last => is_over = true,
                Reading::After | Reading::Wrong => return None,
            }
        }
    }
    literal.finish(&mut out);
    serde_json::from_str::<IgnoredAny>(&out)
        .is_ok()
        .then_some(out)
}

/// A word as JSON: a constant, a number, or the string that it is.
fn push_word(word: &str, is_key: bool, out: &mut String) {
    match word {
        _ if is_key => push_string(word, out),
        "True" | "true" => out.push_str("true"),
        "False" | "false" => out.push_str("false"),
        "None" | "null" => out.push_str("null"),
        _ if serde_json::from_str::<serde_json::Number>(word).is_ok() => out.push_str(word),
        _ => match number(word) {
            Some(number) => out.push_str(&number.to_string()),
            None => push_string(word, out),
        },
    }
}

/// Numbers that Python reads and JSON does not: `+1`, `.5`, `1_000`.
fn number(word: &str) -> Option<serde_json::Number> {
    let is_number = |c: char| c.is_ascii_digit() || "+-._eE".contains(c);
    if !word.chars().all(is_number) {
        return None;
    }
    let word = word.replace('_', "");
    if let Ok(integer) = word.parse::<i64>() {
        return Some(integer.into());
    }
    serde_json::Number::from_f64(word.parse().ok()?)
}

fn push_string(text: &str, out: &mut String) {
    out.push('"');
    text.chars().for_each(|c| push_escaped(c, out));
    out.push('"');
}
