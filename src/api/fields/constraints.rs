//! The constraint that the output must match (specification 9): `response_format`, `grammar`, `structured_outputs` and its other forms,
//! and tools, of which at most one can constrain it. The grammar is compiled later.

use serde_json::{Map, Value};

use super::declare::{Field, fields, wire_types};
use super::form::Form;
use super::kinds::{Shape, shape};
use super::reader::{Fields, describe, invalid_type, member, missing_member, unknown_type};
use super::structured_outputs::{self, Structured};
use super::tools::{self, ToolCalls};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::grammar::GrammarSource;
use crate::{RequestFault, Result};

fields! {
    FormatFields uses [ResponseFormat] {
        /// Whether the completion must be JSON.
        response_format: Field<Shape> = shape("object", "ResponseFormat"),
    }
}

fields! {
    GrammarFields uses [Grammar, JsonSchema] {
        /// A grammar that the whole completion must match; a string is GBNF.
        grammar: Field<Shape> = shape("object or string", "Grammar"),
        /// A JSON schema that the completion must match.
        json_schema: Field<Shape> = shape("object or bool", "JsonSchema").of("llama.cpp"),
    }
}

wire_types! {
    /// A JSON schema.
    pub(in crate::api) struct JsonSchema(#[ts(type = "Record<string, unknown> | boolean")] ());

    /// Whether the completion must be JSON.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ResponseFormat {
        Text,
        JsonObject {
            #[ts(optional = nullable)]
            schema: Option<JsonSchema>,
        },
        JsonSchema { json_schema: FormatSchema },
        /// The grammar is in GBNF.
        Grammar { grammar: String },
    }

    /// A schema, or OpenAI's form with the schema inside.
    #[ts(untagged)]
    pub(in crate::api) enum FormatSchema {
        Plain(JsonSchema),
        Nested(NamedSchema),
    }

    /// A schema with its name.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct NamedSchema {
        schema: JsonSchema,
        name: Option<String>,
        description: Option<String>,
        strict: Option<bool>,
    }

    /// The format that the whole completion must match.
    #[ts(tag = "type", content = "value", rename_all = "snake_case")]
    pub(in crate::api) enum Grammar {
        Regex(String),
        Lark(String),
        JsonSchema(JsonSchema),
        #[ts(rename = "llguidance")]
        LlGuidance(LlGuidanceGrammar),
        /// GBNF.
        #[ts(untagged)]
        Gbnf(String),
    }

    /// A grammar in llguidance's own JSON form.
    #[ts(optional_fields)]
    pub(in crate::api) struct LlGuidanceGrammar {
        #[ts(type = "Record<string, unknown>[]")]
        grammars: (),
        max_tokens: Option<usize>,
    }
}

const FORMAT: &str = FormatFields::response_format.name;
const TEXT: &str = "text";
const GRAMMAR: &str = GrammarFields::grammar.name;

/// The constraint that the fields of specification 9 describe.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) enum Constraint {
    /// There is no constraint: the completion may be any text.
    None,
    /// The completion must match `source`. `param` is the field it comes from; `is_schema` selects
    /// `invalid_schema` over `invalid_grammar` as the error code.
    Grammar {
        source: GrammarSource,
        param: &'static str,
        is_schema: bool,
    },
    /// The completion must be or may be a tool call.
    Tools(ToolCalls),
}

impl Constraint {
    /// Whether it covers every completion from the first token on. Optional tools do not.
    pub(in crate::api) fn covers_everything(&self) -> bool {
        match self {
            Constraint::None => false,
            Constraint::Grammar { .. } => true,
            Constraint::Tools(tools) => tools.is_forced,
        }
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches, form: Form) -> Result<Constraint> {
    let format_field = match form {
        Form::Nested => FORMAT,
        Form::Flat => TEXT,
    };
    let format = match form {
        Form::Nested => response_format(fields)?,
        Form::Flat => text_format(fields)?,
    };
    let tools = tools::read(fields, switches.tool_names, form)?;
    let is_forced = tools.as_ref().is_some_and(|tools| tools.is_forced);
    // `text.format` describes the text. A forced call has a schema of its own and no text beside it.
    let format = format.filter(|_| form == Form::Nested || !is_forced);
    let grammar = grammar(fields)?;
    let mut structured = structured_outputs::read(fields, switches.open_objects)?;
    structured.extend(json_schema(fields)?);
    // Clients of several versions of vLLM write a constraint in the old and in the new form.
    let structured = without_repetitions(structured);
    let mut given: Vec<&str> = Vec::new();
    given.extend(format.is_some().then_some(format_field));
    given.extend(grammar.is_some().then_some(GRAMMAR));
    given.extend(structured.iter().map(|structured| structured.param));
    given.extend(is_forced.then_some("tool_choice"));
    if let [first, later, ..] = given[..] {
        return Err(fault(
            RequestFault::ConflictingParameters,
            later,
            format!("{later} and {first} cannot be combined"),
        ));
    }
    if let Some(Structured {
        source,
        param,
        is_schema,
    }) = structured.into_iter().next()
    {
        return Ok(Constraint::Grammar {
            source,
            param,
            is_schema,
        });
    }
    Ok(match (format, grammar, tools) {
        (Some(source), _, _) => Constraint::Grammar {
            is_schema: !matches!(source, GrammarSource::Gbnf(_)),
            source,
            param: format_field,
        },
        (None, Some(source), _) => Constraint::Grammar {
            source,
            param: GRAMMAR,
            is_schema: false,
        },
        // Optional tools constrain nothing, so a format or a grammar takes precedence.
        (None, None, Some(tools)) => Constraint::Tools(tools),
        (None, None, None) => Constraint::None,
    })
}

/// The constraints that differ, in their order.
fn without_repetitions(given: Vec<Structured>) -> Vec<Structured> {
    let mut different: Vec<Structured> = Vec::new();
    for constraint in given {
        if different.iter().all(|it| it.source != constraint.source) {
            different.push(constraint);
        }
    }
    different
}

fn response_format(fields: &Fields) -> Result<Option<GrammarSource>> {
    let Some(format) = fields.object(FORMAT)? else {
        return Ok(None);
    };
    match kind(FORMAT, format)? {
        "text" => Ok(None),
        "json_object" => match member(format, "schema") {
            None => Ok(Some(GrammarSource::JsonObject)),
            Some(schema) => format_schema(FORMAT, schema).map(Some),
        },
        "json_schema" => {
            let given = member(format, "json_schema")
                .ok_or_else(|| missing_member(FORMAT, "json_schema"))?;
            // OpenAI nests the schema, Fireworks does not.
            match given.as_object() {
                Some(outer) if outer.contains_key("schema") => {
                    named_schema(FORMAT, outer).map(Some)
                }
                _ => format_schema(FORMAT, given).map(Some),
            }
        }
        "grammar" => match member(format, "grammar") {
            Some(Value::String(text)) => Ok(Some(GrammarSource::Gbnf(text.clone()))),
            Some(other) => {
                let expected = "an object whose grammar is a string";
                Err(invalid_type(FORMAT, expected, other))
            }
            None => Err(missing_member(FORMAT, "grammar")),
        },
        other => Err(unknown_type(FORMAT, other)),
    }
}

/// `text.format`, with the members of a schema beside its type.
fn text_format(fields: &Fields) -> Result<Option<GrammarSource>> {
    let Some(text) = fields.object(TEXT)? else {
        return Ok(None);
    };
    let format = match member(text, "format") {
        None => return Ok(None),
        Some(Value::Object(format)) => format,
        Some(other) => {
            let expected = "an object whose format is an object";
            return Err(invalid_type(TEXT, expected, other));
        }
    };
    match kind(TEXT, format)? {
        "text" => Ok(None),
        "json_object" => Ok(Some(GrammarSource::JsonObject)),
        "json_schema" => named_schema(TEXT, format).map(Some),
        other => Err(unknown_type(TEXT, other)),
    }
}

/// A schema with a name, in the member `schema`.
fn named_schema(field: &str, outer: &Map<String, Value>) -> Result<GrammarSource> {
    check_beside_schema(field, outer)?;
    let schema = member(outer, "schema").ok_or_else(|| missing_member(field, "schema"))?;
    format_schema(field, schema)
}

/// llama.cpp's schema beside the other fields.
fn json_schema(fields: &Fields) -> Result<Option<Structured>> {
    const PARAM: &str = GrammarFields::json_schema.name;
    match fields.get(PARAM) {
        None => Ok(None),
        Some(schema @ (Value::Object(_) | Value::Bool(_))) => Ok(Some(Structured {
            source: GrammarSource::JsonSchema(schema.clone()),
            param: PARAM,
            is_schema: true,
        })),
        Some(other) => Err(invalid_type(PARAM, "an object or a boolean", other)),
    }
}

fn format_schema(field: &str, schema: &Value) -> Result<GrammarSource> {
    match schema {
        Value::Object(_) | Value::Bool(_) => Ok(GrammarSource::JsonSchema(schema.clone())),
        other => Err(fault(
            RequestFault::InvalidSchema,
            field,
            format!(
                "{field}: a schema must be an object or a boolean, not {}",
                describe(other)
            ),
        )),
    }
}

/// Validates the members beside a schema. They have no effect: the output always has to match
/// the schema.
fn check_beside_schema(field: &str, outer: &Map<String, Value>) -> Result<()> {
    for (name, expected, is_legal) in [
        ("name", "a string", Value::is_string as fn(&Value) -> bool),
        ("description", "a string", Value::is_string),
        ("strict", "a boolean", Value::is_boolean),
    ] {
        if let Some(value) = member(outer, name).filter(|value| !is_legal(value)) {
            let expected = format!("an object with a schema whose {name} is {expected}");
            return Err(invalid_type(field, &expected, value));
        }
    }
    Ok(())
}

fn grammar(fields: &Fields) -> Result<Option<GrammarSource>> {
    if let Some(Value::String(text)) = fields.get(GRAMMAR)
        && text.contains("::=")
    {
        return Ok(Some(GrammarSource::Gbnf(text.clone())));
    }
    let Some(grammar) = fields.object(GRAMMAR)? else {
        return Ok(None);
    };
    let kind = kind(GRAMMAR, grammar)?;
    if !["regex", "json_schema", "lark", "llguidance"].contains(&kind) {
        return Err(unknown_type(GRAMMAR, kind));
    }
    let value = member(grammar, "value").ok_or_else(|| missing_member(GRAMMAR, "value"))?;
    Ok(Some(match (kind, value) {
        ("regex", Value::String(regex)) => GrammarSource::Regex(regex.clone()),
        ("lark", Value::String(lark)) => GrammarSource::Lark(lark.clone()),
        ("json_schema", Value::Object(_) | Value::Bool(_)) => {
            GrammarSource::JsonSchema(value.clone())
        }
        ("llguidance", Value::Object(_)) => GrammarSource::LlGuidance(value.clone()),
        _ => {
            let expected = format!("an object with a value that fits the type {kind}");
            return Err(invalid_type(GRAMMAR, &expected, value));
        }
    }))
}

/// The member `type` of a field.
fn kind<'a>(name: &str, object: &'a Map<String, Value>) -> Result<&'a str> {
    match member(object, "type") {
        Some(Value::String(kind)) => Ok(kind),
        Some(other) => Err(invalid_type(
            name,
            "an object whose type is a string",
            other,
        )),
        None => Err(missing_member(name, "type")),
    }
}
