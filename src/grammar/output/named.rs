//! Calls of Mistral models: `[TOOL_CALLS]name[CALL_ID]id[ARGS]{...}`, or a JSON list after the first tag.

use super::delivery::{Delivery, Status};
use super::json::JsonCalls;
use super::json_text::{Place, ValueEnd, is_space};

/// The body after `[TOOL_CALLS]`.
#[derive(Debug)]
pub(super) enum NamedCall {
    /// The name or the list comes next.
    Before,
    /// A list or an object.
    Json(JsonCalls),
    /// The name and all up to the arguments.
    Head(String),
    /// The arguments.
    Arguments(ValueEnd),
}

impl NamedCall {
    pub(super) fn feed(&mut self, character: char, delivery: &mut Delivery) -> Status {
        match self {
            NamedCall::Before if is_space(character) => Status::More,
            NamedCall::Before if "[{".contains(character) => {
                let mut calls = JsonCalls::new("", true);
                let status = calls.feed(character, delivery);
                *self = NamedCall::Json(calls);
                status
            }
            NamedCall::Before => {
                *self = NamedCall::Head(character.into());
                Status::More
            }
            NamedCall::Json(calls) => calls.feed(character, delivery),
            NamedCall::Head(head) if character == '{' => {
                let Some(name) = name(head).filter(|name| delivery.tool(name).is_some()) else {
                    return Status::Failed;
                };
                *self = NamedCall::Arguments(delivery.start_object(name));
                Status::More
            }
            NamedCall::Head(head) => {
                head.push(character);
                // A name without what may follow it.
                let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                let tail = head.trim_start_matches(is_name);
                let fits = tail.trim().is_empty() || tail.trim_start().starts_with('[');
                match fits {
                    true => Status::More,
                    false => Status::Failed,
                }
            }
            NamedCall::Arguments(value) => {
                delivery.argument(character);
                match value.feed(character) {
                    Place::Last => Status::Done,
                    _ => Status::More,
                }
            }
        }
    }

    /// Same as [`JsonCalls::finish`].
    pub(super) fn finish(&mut self, delivery: &mut Delivery) -> bool {
        match self {
            NamedCall::Json(calls) => calls.finish(delivery),
            NamedCall::Arguments(_) => true,
            NamedCall::Before | NamedCall::Head(_) => false,
        }
    }
}

/// The name in `name[CALL_ID]id[ARGS]`, whose tags may be missing.
fn name(head: &str) -> Option<&str> {
    let head = head.trim_end();
    let head = head.strip_suffix("[ARGS]").unwrap_or(head);
    let (name, id) = head.split_once("[CALL_ID]").unwrap_or((head, ""));
    (!id.contains('[')).then(|| name.trim_end())
}
