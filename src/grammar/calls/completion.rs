//! The call that a completion consists of (specification 9.4).

use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::shape::open;
use crate::grammar::output::{CallForm, OutputForm, OutputPart, OutputReader};
use crate::grammar::tool::{Tool, ToolCall};

/// The call of one of `tools`, if `text` consists of a complete one. Special tokens may be missing from
/// the text.
pub fn parse_completion(form: OutputForm, tools: &[Tool], text: &str) -> Option<ToolCall> {
    let calls = form.calls.in_completions();
    let call = match calls {
        CallForm::Bare => in_frame(text, ["", "", "", ""], "arguments", true),
        CallForm::Llama3 => in_frame(text, ["", "", "", ""], "parameters", true),
        CallForm::Hermes { has_special_tags } => {
            let frame = ["<tool_call>", "", "", "</tool_call>"];
            in_frame(text, frame, "arguments", has_special_tags)
        }
        CallForm::Mistral => in_frame(text, ["[TOOL_CALLS]", "[", "]", ""], "arguments", true),
        _ => {
            let opened = || format!("{}{text}", open(calls));
            return read(form, tools, text).or_else(|| read(form, tools, &opened()));
        }
    }?;
    let is_declared = tools.iter().any(|tool| tool.name == call.name);
    is_declared.then_some(call)
}

/// The call, if it is the only part.
fn read(form: OutputForm, tools: &[Tool], text: &str) -> Option<ToolCall> {
    let form = OutputForm {
        reasoning: None,
        ..form
    };
    let mut reader = OutputReader::new(&form, tools, "");
    let mut call = None;
    let mut parts = reader.push(text);
    parts.extend(reader.finish());
    for part in parts {
        match (part, &mut call) {
            (OutputPart::CallStart { name, .. }, None) => {
                call = Some(ToolCall {
                    name,
                    arguments: String::new(),
                });
            }
            (OutputPart::CallArguments { json, .. }, Some(call)) => call.arguments += &json,
            (OutputPart::Content(text), _) if text.trim().is_empty() => {}
            _ => return None,
        }
    }
    call.filter(|call| serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok())
}

/// The call in an opener, brackets before and after it, and a closer.
fn in_frame(
    text: &str,
    [opener, before, after, closer]: [&str; 4],
    arguments: &str,
    may_hide_tags: bool,
) -> Option<ToolCall> {
    let mut rest = text.trim();
    let opened = rest.strip_prefix(opener);
    if opened.is_none() && !may_hide_tags {
        return None;
    }
    rest = opened.unwrap_or(rest).trim_start();
    let closed = rest.strip_suffix(closer);
    if closed.is_none() && !may_hide_tags {
        return None;
    }
    rest = closed.unwrap_or(rest).trim_end();
    rest = rest.strip_prefix(before)?;
    rest = rest.strip_suffix(after)?;
    parse_object(rest.trim(), arguments)
}

/// `{"name": ..., ARGUMENTS: {...}}` and nothing else.
fn parse_object(text: &str, arguments: &str) -> Option<ToolCall> {
    let rest = text.strip_prefix('{')?;
    let rest = member(rest, "name")?;
    let (name, rest) = json_prefix(rest)?;
    let name = serde_json::from_str::<String>(name).ok()?;
    let rest = member(rest.trim_start().strip_prefix(',')?, arguments)?;
    let (arguments, rest) = json_prefix(rest)?;
    let is_object = arguments.starts_with('{') && rest.trim_start() == "}";
    is_object.then(|| ToolCall {
        name,
        arguments: arguments.to_owned(),
    })
}

/// The text after `"key":`.
fn member<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let (found, rest) = json_prefix(text)?;
    let found = serde_json::from_str::<String>(found).ok()?;
    let rest = rest.trim_start().strip_prefix(':')?;
    (found == key).then_some(rest)
}

/// The text of the JSON value that `text` begins with, and the rest.
fn json_prefix(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}
