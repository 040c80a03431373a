//! `structured_outputs`, the older `guided_*`, `regex` and `ebnf` (specification 9.6): other ways to write a constraint.

use serde_json::{Map, Value, json};

use super::declare::{Field, fields, wire_types};
use super::kinds::{Shape, Text, shape, text};
use super::reader::{Fields, describe, invalid_type, invalid_value, member};
use crate::api::error::fault;
use crate::grammar::{GrammarSource, Whitespace, choice_regex};
use crate::{RequestFault, Result};

fields! {
    StructuredFields uses [StructuredOutputs] {
        /// The format that the completion must match; exactly one of the members `json`, `json_object`, `regex`, `choice` and
        /// `grammar`.
        structured_outputs: Field<Shape> = shape("object", "StructuredOutputs").of("vLLM"),
        /// A JSON schema, or its text.
        guided_json: Field<Shape> =
            shape("object, bool or string", "Record<string, unknown> | boolean | string").of("vLLM"),
        /// A regular expression.
        guided_regex: Field<Text> = text().of("vLLM"),
        /// Strings of which the completion is one.
        guided_choice: Field<Shape> = shape("string[]", "string[]").of("vLLM"),
        /// A grammar in GBNF or Lark.
        guided_grammar: Field<Text> = text().of("vLLM"),
        /// A regular expression of the white space in the JSON of `guided_json`.
        guided_whitespace_pattern: Field<Text> = text().of("vLLM"),
        /// Not used.
        guided_decoding_backend: Field<Text> = text().of("vLLM"),
        /// A regular expression.
        regex: Field<Text> = text().of("SGLang"),
        /// A grammar in EBNF.
        ebnf: Field<Text> = text().of("SGLang"),
    }
}

wire_types! {
    /// The format that the completion must match.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct StructuredOutputs {
        /// A JSON schema, or its text.
        #[ts(optional, type = "Record<string, unknown> | boolean | string | null")]
        json: Option<()>,
        /// One JSON object.
        json_object: Option<bool>,
        regex: Option<String>,
        /// Strings of which the completion is one.
        choice: Option<Vec<String>>,
        /// The grammar is in GBNF or Lark.
        grammar: Option<String>,
        /// No white space between JSON tokens.
        disable_any_whitespace: Option<bool>,
        /// A regular expression of the white space between JSON tokens.
        whitespace_pattern: Option<String>,
    }
}

/// A constraint of one of these fields.
#[derive(Debug)]
pub(super) struct Structured {
    pub source: GrammarSource,
    /// The field.
    pub param: &'static str,
    pub is_schema: bool,
}

const STRUCTURED: &str = StructuredFields::structured_outputs.name;

/// All constraints that are given, in the order of the fields.
pub(super) fn read(fields: &Fields, has_open_objects: bool) -> Result<Vec<Structured>> {
    let mut given = Vec::new();
    if let Some(members) = fields.object(STRUCTURED)? {
        given.extend(structured_outputs(members, has_open_objects)?);
    }
    let whitespace = match fields.string(StructuredFields::guided_whitespace_pattern.name)? {
        None => Whitespace::Limited,
        Some(pattern) => Whitespace::Pattern(pattern.to_owned()),
    };
    fields.string(StructuredFields::guided_decoding_backend.name)?;
    for (param, kind) in [
        (StructuredFields::guided_json.name, "json"),
        (StructuredFields::guided_regex.name, "regex"),
        (StructuredFields::guided_choice.name, "choice"),
        (StructuredFields::guided_grammar.name, "grammar"),
        (StructuredFields::regex.name, "regex"),
        (StructuredFields::ebnf.name, "ebnf"),
    ] {
        if let Some(value) = fields.get(param) {
            given.push(structured(param, kind, value, &whitespace)?);
        }
    }
    Ok(given)
}

fn structured_outputs(
    members: &Map<String, Value>,
    has_open_objects: bool,
) -> Result<Option<Structured>> {
    // It says what to do if a vendor's compiler fails, and there is one here.
    flag(members, "disable_fallback")?;
    check_unsupported(members, has_open_objects)?;
    let whitespace = whitespace(members)?;
    let mut given = Vec::new();
    if flag(members, "json_object")? {
        let any = json!({"type": "object"});
        given.push(schema(STRUCTURED, any, whitespace.clone()));
    }
    for kind in ["json", "regex", "choice", "grammar"] {
        if let Some(value) = member(members, kind) {
            given.push(structured(STRUCTURED, kind, value, &whitespace)?);
        }
    }
    check_known(members)?;
    if given.len() > 1 {
        let reason = "give one of json, json_object, regex, choice and grammar";
        return Err(invalid_value(STRUCTURED, reason));
    }
    // An empty object constrains nothing. False and null have the same meaning.
    Ok(given.pop())
}

fn flag(members: &Map<String, Value>, name: &str) -> Result<bool> {
    match member(members, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            let expected = format!("an object whose {name} is a boolean");
            Err(invalid_type(STRUCTURED, &expected, other))
        }
    }
}

fn check_unsupported(members: &Map<String, Value>, has_open_objects: bool) -> Result<()> {
    for name in ["disable_additional_properties", "structural_tag"] {
        let value = member(members, name);
        let is_off = value.is_none_or(|value| *value == Value::Bool(false));
        // Objects are closed in any case.
        let holds = name == "disable_additional_properties"
            && value == Some(&Value::Bool(true))
            && !has_open_objects;
        if !is_off && !holds {
            let message = format!("{STRUCTURED}: {name} is not supported");
            return Err(fault(
                RequestFault::UnsupportedParameter,
                STRUCTURED,
                message,
            ));
        }
    }
    Ok(())
}

fn whitespace(members: &Map<String, Value>) -> Result<Whitespace> {
    let pattern = member(members, "whitespace_pattern").map(|pattern| match pattern {
        Value::String(pattern) => Ok(pattern.clone()),
        other => {
            let expected = "an object whose whitespace_pattern is a string";
            Err(invalid_type(STRUCTURED, expected, other))
        }
    });
    let is_none = flag(members, "disable_any_whitespace")?;
    Ok(match (is_none, pattern.transpose()?) {
        (true, _) => Whitespace::None,
        (false, Some(pattern)) => Whitespace::Pattern(pattern),
        (false, None) => Whitespace::Limited,
    })
}

fn check_known(members: &Map<String, Value>) -> Result<()> {
    const KNOWN: [&str; 10] = [
        "json",
        "json_object",
        "regex",
        "choice",
        "grammar",
        "disable_fallback",
        "disable_any_whitespace",
        "disable_additional_properties",
        "structural_tag",
        "whitespace_pattern",
    ];
    let is_unknown = |name: &&String| !KNOWN.contains(&name.as_str());
    if let Some(name) = members.keys().find(is_unknown) {
        let name = describe(&Value::String(name.clone()));
        return Err(invalid_value(
            STRUCTURED,
            format!("{name} is no member of it"),
        ));
    }
    Ok(())
}

fn structured(
    param: &'static str,
    kind: &str,
    value: &Value,
    whitespace: &Whitespace,
) -> Result<Structured> {
    let wrong = |expected: &str| {
        let member = if param == STRUCTURED { kind } else { "value" };
        let expected = format!("a constraint whose {member} is {expected}");
        Err(invalid_type(param, &expected, value))
    };
    let grammar = |source| Structured {
        source,
        param,
        is_schema: false,
    };
    match (kind, value) {
        ("json", Value::Object(_) | Value::Bool(_)) => {
            Ok(schema(param, value.clone(), whitespace.clone()))
        }
        ("json", Value::String(text)) => {
            let read = serde_json::from_str::<Value>(text).ok();
            match read.filter(|read| read.is_object() || read.is_boolean()) {
                Some(read) => Ok(schema(param, read, whitespace.clone())),
                None => Err(fault(
                    RequestFault::InvalidSchema,
                    param,
                    format!("{param}: the string is not the JSON text of a schema"),
                )),
            }
        }
        ("json", _) => wrong("a schema"),
        ("choice", Value::Array(choices)) => {
            let texts = choices
                .iter()
                .map(Value::as_str)
                .collect::<Option<Vec<_>>>();
            match texts {
                Some(texts) if !texts.is_empty() => {
                    Ok(grammar(GrammarSource::Regex(choice_regex(&texts))))
                }
                Some(_) => Err(invalid_value(param, "there is nothing to choose from")),
                None => wrong("an array of strings"),
            }
        }
        ("choice", _) => wrong("an array of strings"),
        ("regex", Value::String(text)) => Ok(grammar(GrammarSource::Regex(text.clone()))),
        ("ebnf", Value::String(text)) => Ok(grammar(GrammarSource::Ebnf(text.clone()))),
        // Only GBNF defines its rules so.
        (_, Value::String(text)) if text.contains("::=") => {
            Ok(grammar(GrammarSource::Gbnf(text.clone())))
        }
        (_, Value::String(text)) => Ok(grammar(GrammarSource::Lark(text.clone()))),
        _ => wrong("a string"),
    }
}

fn schema(param: &'static str, schema: Value, whitespace: Whitespace) -> Structured {
    Structured {
        source: GrammarSource::SpacedJsonSchema { schema, whitespace },
        param,
        is_schema: true,
    }
}
