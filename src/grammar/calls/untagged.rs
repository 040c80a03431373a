//! Answers in forms whose calls have no opening tag, bare JSON and Llama 3's: a call is told from content by the name of a tool
//! at its beginning.

use super::shape::Shape;
use super::writer::{Writer, escaped, sequence};

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
    /// Several calls may follow each other.
    pub is_parallel: bool,
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
    let first = writer.rule("first", &calls.join("\n | "))?;
    let calls = match answer.is_parallel {
        true => format!("{first} (gap (\";\" gap)? {})*", shape.call),
        false => first,
    };
    let names = names.join("|");
    let (text, limits) = (answer.text, answer.limits);
    let only = format!("/{text}/{limits} & ~/{start}({names})(?s:.*)/");
    let only = writer.rule("ONLY", &only)?;
    let body = writer.rule("answer", &format!("{only}? | {calls}"))?;
    let tag = writer.id(PYTHON_TAG).map(|id| format!("<[{id}]>?"));
    Ok(sequence(&[&tag.unwrap_or_default(), &body]))
}
