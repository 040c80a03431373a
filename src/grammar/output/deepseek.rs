//! Calls of DeepSeek models: the name after a separator, the arguments as JSON in a code block.

use super::delivery::{Delivery, Status};
use super::json_text::{Place, ValueEnd, is_space};

/// Opens the calls.
pub(in crate::grammar) const OPENER: &str = "<｜tool▁calls▁begin｜>";
/// Closes the calls.
pub(in crate::grammar) const CLOSER: &str = "<｜tool▁calls▁end｜>";
/// Opens one call.
pub(in crate::grammar) const CALL: &str = "<｜tool▁call▁begin｜>";
/// Closes one call.
pub(in crate::grammar) const CALL_END: &str = "<｜tool▁call▁end｜>";
/// Separates the type from the name, in later models the name from the arguments.
pub(in crate::grammar) const SEPARATOR: &str = "<｜tool▁sep｜>";

/// The body after the opener.
#[derive(Debug)]
pub(super) enum DeepSeekCalls {
    /// A call or the closer comes next. The part of its tag that has been read.
    Between(String),
    /// The text before the arguments, as far as it has been read.
    Head(String),
    /// The arguments.
    Arguments(ValueEnd),
    /// The text after the arguments, as far as it has been read.
    Tail(String),
}

impl DeepSeekCalls {
    pub(super) fn new() -> DeepSeekCalls {
        DeepSeekCalls::Between(String::new())
    }

    pub(super) fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        match self {
            DeepSeekCalls::Between(tag) => {
                if tag.is_empty() && is_space(character) {
                    return Status::More;
                }
                tag.push(character);
                if tag == CALL {
                    *self = DeepSeekCalls::Head(String::new());
                } else if tag == CLOSER {
                    return Status::Done;
                } else if !CALL.starts_with(&*tag) && !CLOSER.starts_with(&*tag) {
                    return Status::Left;
                }
            }
            DeepSeekCalls::Head(head) if character == '{' => {
                let Some(name) = name(head).filter(|name| delivery.tool(name).is_some()) else {
                    return Status::Failed;
                };
                *self = DeepSeekCalls::Arguments(delivery.start_object(name));
            }
            DeepSeekCalls::Head(head) => head.push(character),
            DeepSeekCalls::Arguments(value) => {
                delivery.argument(character);
                if value.feed(character) == Place::Last {
                    *self = DeepSeekCalls::Tail(String::new());
                }
            }
            DeepSeekCalls::Tail(tail) => {
                if tail.is_empty() && (is_space(character) || character == '`') {
                    return Status::More;
                }
                tail.push(character);
                if tail == CALL_END {
                    delivery.settle();
                    *self = DeepSeekCalls::new();
                } else if !CALL_END.starts_with(&*tail) {
                    return Status::Left;
                }
            }
        }
        Status::More
    }

    /// The output ends. Whether the held text belongs to calls that were delivered.
    pub(super) fn finish(&self, delivery: &Delivery) -> bool {
        match self {
            DeepSeekCalls::Between(_) => delivery.calls() > 0,
            DeepSeekCalls::Head(_) => false,
            DeepSeekCalls::Arguments(_) | DeepSeekCalls::Tail(_) => true,
        }
    }
}

/// The name in `type SEPARATOR name "```json"` or `name SEPARATOR`.
fn name(head: &str) -> Option<&str> {
    let (first, rest) = head.split_once(SEPARATOR)?;
    let rest = rest.trim();
    let rest = rest.strip_suffix("```json").unwrap_or(rest);
    Some(match rest.trim() {
        "" => first.trim(),
        name => name,
    })
}
