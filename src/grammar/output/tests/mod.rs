//! Outputs of every family, whole and divided; renderings of chat templates, read back.

mod calls;
mod soup;
mod templates;
mod text;

use serde_json::{Value, json};

use super::form::{CallForm, OutputForm};
use super::{OutputPart, OutputReader};
use crate::grammar::tool::Tool;

/// The parts of an output.
#[derive(Debug, Default, PartialEq)]
struct Read {
    content: String,
    reasoning: String,
    /// Names and arguments.
    calls: Vec<(String, String)>,
}

impl Read {
    fn add(&mut self, parts: Vec<OutputPart>) {
        for part in parts {
            match part {
                OutputPart::Content(text) => self.content += &text,
                OutputPart::Reasoning(text) => self.reasoning += &text,
                OutputPart::CallStart { index, name } => {
                    assert_eq!(index, self.calls.len());
                    self.calls.push((name, String::new()));
                }
                OutputPart::CallArguments { index, json } => {
                    assert_eq!(index + 1, self.calls.len());
                    self.calls[index].1 += &json;
                }
            }
        }
    }

    /// The arguments of a call as a value.
    fn arguments(&self, index: usize) -> Value {
        let (name, arguments) = &self.calls[index];
        serde_json::from_str(arguments)
            .unwrap_or_else(|error| panic!("{name}: {arguments}: {error}"))
    }
}

fn form(calls: CallForm) -> OutputForm {
    OutputForm {
        reasoning: OutputForm::judged("<think>", &|_| false, &|_| false).reasoning,
        calls,
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, parameters| Tool {
        name: name.to_owned(),
        parameters,
        strict: false,
    };
    vec![
        tool(
            "get_weather",
            Some(json!({
                "type": "object",
                "properties": {
                    "city": { "type": "string" },
                    "unit": { "enum": ["celsius", "fahrenheit"] },
                    "days": { "type": "integer" },
                    "when": { "$ref": "#/$defs/when" }
                },
                "$defs": { "when": { "anyOf": [{ "type": "string" }, { "type": "null" }] } }
            })),
        ),
        tool(
            "rechne",
            Some(json!({
                "properties": { "expr": { "type": "string" }, "opts": { "type": "object" } }
            })),
        ),
        tool("now", None),
    ]
}

/// Reads `pieces` one after the other.
fn read_pieces<'t>(
    form: &OutputForm,
    prompt_tail: &str,
    pieces: impl IntoIterator<Item = &'t str>,
) -> Read {
    let mut reader = OutputReader::new(form, &tools(), prompt_tail);
    let mut read = Read::default();
    for piece in pieces {
        read.add(reader.push(piece));
    }
    read.add(reader.finish());
    assert_eq!(reader.finish(), Vec::new());
    read
}

/// Reads `text` whole, in every pair of pieces and by characters, which must give the same.
fn read_after(form: &OutputForm, prompt_tail: &str, text: &str) -> Read {
    let whole = read_pieces(form, prompt_tail, [text]);
    let boundaries = text.char_indices().map(|(start, _)| start);
    for start in boundaries.clone() {
        let pieces = [&text[..start], &text[start..]];
        assert_eq!(read_pieces(form, prompt_tail, pieces), whole, "{pieces:?}");
    }
    let ends = boundaries.clone().skip(1).chain([text.len()]);
    let characters = boundaries.zip(ends).map(|(start, end)| &text[start..end]);
    assert_eq!(read_pieces(form, prompt_tail, characters), whole);
    whole
}

fn read(calls: CallForm, text: &str) -> Read {
    read_after(&form(calls), "", text)
}

const HERMES: CallForm = CallForm::Hermes {
    has_special_tags: false,
};
