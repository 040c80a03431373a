//! Answers in forms whose calls have no opening tag, bare JSON and Llama's: a call differs from content by the name of a tool
//! at its beginning.

use super::shape::Shape;
use super::writer::{Writer, escaped, literal, sequence};

/// The text that may precede a call of Llama 3.
const PYTHON_TAG: &str = "<|python_tag|>";
/// A member that Llama 3 may write before the name. Completions are not read with it.
pub(super) const TYPE_MEMBER: &str = r#"("type"\s*:\s*"function"\s*,\s*)?"#;

/// The differences between turns and completions.
pub(super) struct Answer<'a> {
    /// The expression of content.
    pub text: &'a str,
    /// The strings that content must not be, as further operands of its terminal.
    pub limits: &'a str,
    /// The expression of what may be before the name in a call's object.
    pub members: &'a str,
    /// Whether several calls may follow each other.
    pub is_parallel: bool,
    /// Whether calls may be written as `[f(a=1)]`, in forms that have this.
    pub has_lists: bool,
}

/// Content that does not begin with a call, or calls.
pub(super) fn answer(
    writer: &mut Writer<'_>,
    shape: &Shape,
    answer: &Answer<'_>,
) -> Result<String, String> {
    // Content that begins after white space leaves it to the rule before it.
    let space = match answer.text.starts_with("\\S") {
        true => "",
        false => "\\s*",
    };
    let start = format!("{space}\\{{\\s*{}\"name\"\\s*:\\s*", answer.members);
    let names: Vec<String> = shape.named.iter().map(|(name, _)| escaped(name)).collect();
    let mut calls = Vec::with_capacity(names.len());
    // The lexer follows content and the beginnings of calls at once. A name completes a beginning and ends what can be content.
    for (index, (name, (_, rest))) in names.iter().zip(&shape.named).enumerate() {
        let begun = writer.rule(format!("BEGUN_{index}"), &format!("/{start}{name}/"))?;
        calls.push(sequence(&[&begun, rest, "s \"}\""]));
    }
    let start_of_list = format!("{space}\\[\\s*");
    let listed = match answer.has_lists {
        true => lists(writer, shape, &start_of_list, answer.is_parallel)?,
        false => Vec::new(),
    };
    let mut limits = answer.limits.to_owned();
    if answer.has_lists && !shape.listed.is_empty() {
        let names = shape.listed.iter().map(|(name, _)| escaped(name));
        let names = names.collect::<Vec<_>>().join("|");
        limits.push_str(&format!(" & ~/{start_of_list}({names})\\((?s:.*)/"));
    }
    calls.extend(listed);
    let first = writer.rule("first", &calls.join("\n | "))?;
    let calls = match answer.is_parallel {
        true => format!("{first} (gap (\";\" gap)? {})*", shape.call),
        false => first,
    };
    let names = names.join("|");
    let text = answer.text;
    let only = format!("/{text}/{limits} & ~/{start}({names})(?s:.*)/");
    let only = writer.rule("ONLY", &only)?;
    let body = writer.rule("answer", &format!("{only}? | {calls}"))?;
    let tag = writer.id(PYTHON_TAG).map(|id| format!("<[{id}]>?"));
    Ok(sequence(&[&tag.unwrap_or_default(), &body]))
}

/// Lists of calls that begin with a call of each tool.
fn lists(
    writer: &mut Writer<'_>,
    shape: &Shape,
    start: &str,
    is_parallel: bool,
) -> Result<Vec<String>, String> {
    let written = || {
        let tools = shape.listed.iter();
        tools.filter_map(|(name, arguments)| Some((name, arguments.as_ref()?)))
    };
    if written().next().is_none() {
        return Ok(Vec::new());
    }
    let next = written().map(|(name, arguments)| {
        let begin = literal(&format!("{name}("));
        sequence(&[&begin, arguments, "\")\""])
    });
    let next = next.collect::<Vec<_>>().join("\n | ");
    let more = match is_parallel {
        true => format!("(\", \" {})*", writer.rule("listed", &next)?),
        false => String::new(),
    };
    let mut lists = Vec::new();
    for (index, (name, arguments)) in written().enumerate() {
        let begun = format!("/{start}{}\\(/", escaped(name));
        let begun = writer.rule(format!("LISTED_{index}"), &begun)?;
        lists.push(sequence(&[&begun, arguments, "\")\"", &more, "\"]\""]));
    }
    Ok(lists)
}
