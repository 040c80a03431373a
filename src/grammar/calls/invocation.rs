//! Grammars of calls that look like calls in a programming language.

use serde_json::{Value, json};

use super::parameters::{Parameter, parameters, unwritable};
use super::writer::{Writer, literal, sequence};
use crate::grammar::output::{Invocation, Types, reference};
use crate::grammar::tool::Tool;

/// References and subschemas that are followed.
const MAX_DEPTH: usize = 16;

/// The rule of one call of `tool`, after the tag that opens calls.
pub(super) fn call(
    writer: &mut Writer<'_>,
    form: &Invocation,
    tool: &Tool,
    index: usize,
) -> Result<String, String> {
    Ok(sequence(&[
        &literal(&format!("{}{}{}", form.before, tool.name, form.brackets.0)),
        &arguments(writer, form, tool, index)?,
        &literal(&form.brackets.1.to_string()),
    ]))
}

/// The rule of what is in the brackets of a call of `tool`.
pub(super) fn arguments(
    writer: &mut Writer<'_>,
    form: &Invocation,
    tool: &Tool,
    index: usize,
) -> Result<String, String> {
    let assign = literal(&form.assign.to_string());
    match &tool.parameters {
        Some(schema) => {
            let mut entries = Vec::new();
            for parameter in parameters(schema)? {
                let Parameter {
                    name,
                    is_required,
                    schema,
                } = parameter;
                let is_name = !name.is_empty()
                    && name.len() <= 256
                    && name
                        .chars()
                        .all(|c| c.is_alphanumeric() || "_-.".contains(c));
                if !is_name {
                    return Err(unwritable(&name));
                }
                let value = value(writer, form, &schema, &schema, 0)
                    .map_err(|error| format!("{name}: {error}"))?;
                let entry = sequence(&[&literal(&name), &assign, &value]);
                entries.push((entry, is_required));
            }
            let comma = if form.is_list { ", " } else { "," };
            in_order(writer, &format!("e{index}"), &entries, comma)
        }
        None => {
            if !writer.has("entries") {
                let value = any_value(writer, form)?;
                let body = format!("/[A-Za-z_][A-Za-z0-9_]{{0,63}}/ {assign} {value}");
                writer.rule("entry", &body)?;
                writer.rule("entries", "(entry (\",\" s entry)*)?")?;
            }
            Ok("entries".to_owned())
        }
    }
}

/// Entries in their order, with `comma` between them; those that are not required may be missing.
fn in_order(
    writer: &mut Writer<'_>,
    stem: &str,
    entries: &[(String, bool)],
    comma: &str,
) -> Result<String, String> {
    // From the last: what may follow if nothing was written (0) and if something was (1).
    let mut rest = [String::new(), String::new()];
    for (place, (entry, is_required)) in entries.iter().enumerate().rev() {
        let entry = writer.rule(format!("{stem}_{place}"), entry)?;
        let mut next = [String::new(), String::new()];
        for (has_before, next) in next.iter_mut().enumerate() {
            let comma = if has_before == 1 {
                literal(comma)
            } else {
                String::new()
            };
            let mut body = sequence(&[&comma, &entry, &rest[1]]);
            if !is_required {
                let without = &rest[has_before];
                match without.is_empty() {
                    true => body = format!("({body})?"),
                    false => body = format!("{body} | {without}"),
                }
            }
            *next = writer.rule(format!("{stem}_{place}_{has_before}"), &body)?;
        }
        rest = next;
    }
    let [first, _] = rest;
    Ok(first)
}

/// A value of `schema`.
fn value(
    writer: &mut Writer<'_>,
    form: &Invocation,
    root: &Value,
    schema: &Value,
    depth: usize,
) -> Result<String, String> {
    if form.quote.is_empty() {
        // JSON is nearly Python.
        let types = Types::of_schema(root, schema);
        let is_boolean = types == Types::of_schema(root, &json!({ "type": "boolean" }));
        return match is_boolean && schema.get("enum").is_none() && schema.get("const").is_none() {
            true => Ok("(\"True\" | \"False\")".to_owned()),
            false => writer.schema(schema),
        };
    }
    if depth > MAX_DEPTH {
        return Err(format!("the schema is deeper than {MAX_DEPTH} levels"));
    }
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(true) => return any_value(writer, form),
        _ => return Err("must be a schema that allows something".to_owned()),
    };
    if let Some(target) = reference(root, schema) {
        return value(writer, form, root, target, depth + 1);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(schemas) = members.get(keyword).and_then(Value::as_array) {
            let found: Result<Vec<String>, String> = schemas
                .iter()
                .map(|schema| value(writer, form, root, schema, depth + 1))
                .collect();
            return Ok(format!("({})", found?.join(" | ")));
        }
    }
    let constants = match (members.get("enum"), members.get("const")) {
        (_, Some(constant)) => Some(vec![constant]),
        (Some(values), _) => values.as_array().map(|values| values.iter().collect()),
        _ => None,
    };
    if let Some(constants) = constants {
        let found: Vec<String> = constants
            .into_iter()
            .map(|constant| written(writer, form, constant))
            .collect();
        return Ok(format!("({})", found.join(" | ")));
    }
    let names: Vec<&str> = match members.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return any_value(writer, form),
    };
    let found: Result<Vec<String>, String> = names
        .into_iter()
        .map(|name| value_of_type(writer, form, root, schema, name, depth))
        .collect();
    Ok(format!("({})", found?.join(" | ")))
}

/// A value of `schema`, an object, that is of the type `name`.
fn value_of_type(
    writer: &mut Writer<'_>,
    form: &Invocation,
    root: &Value,
    schema: &Value,
    name: &str,
    depth: usize,
) -> Result<String, String> {
    match name {
        "string" => {
            allow_members(schema, &[])?;
            string(writer, form)
        }
        "array" => {
            allow_members(schema, &["items"])?;
            let item = match schema.get("items") {
                Some(items) => value(writer, form, root, items, depth + 1)?,
                None => any_value(writer, form)?,
            };
            Ok(format!("\"[\" ({item} (\",\" {item})*)? \"]\""))
        }
        "object" => {
            allow_members(schema, &["properties", "required", "additionalProperties"])?;
            object(writer, form, root, schema, depth)
        }
        "integer" | "number" | "boolean" | "null" => {
            let mut one = schema.clone();
            one["type"] = name.into();
            writer.schema(&one)
        }
        _ => Err(format!("type {name:?} is unknown")),
    }
}

/// Refuses members of a schema besides `known` and those that every schema may have.
fn allow_members(schema: &Value, known: &[&str]) -> Result<(), String> {
    const ALWAYS: [&str; 7] = [
        "type",
        "title",
        "description",
        "default",
        "examples",
        "$defs",
        "definitions",
    ];
    let mut members = schema.as_object().into_iter().flat_map(|it| it.keys());
    let unknown =
        members.find(|key| !ALWAYS.contains(&key.as_str()) && !known.contains(&key.as_str()));
    match unknown {
        Some(key) => Err(format!(
            "{key:?} is not supported in this model's form of calls"
        )),
        None => Ok(()),
    }
}

/// An object with the properties of `schema` in order.
fn object(
    writer: &mut Writer<'_>,
    form: &Invocation,
    root: &Value,
    schema: &Value,
    depth: usize,
) -> Result<String, String> {
    let mut entries = Vec::new();
    for parameter in parameters(schema)? {
        let Parameter {
            name,
            is_required,
            schema,
        } = parameter;
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(unwritable(&name));
        }
        let inner = value(writer, form, root, &schema, depth + 1)?;
        let entry = sequence(&[&literal(&format!("{name}:")), &inner]);
        entries.push((entry, is_required));
    }
    let stem = writer.fresh("o");
    let inner = in_order(writer, &stem, &entries, ",")?;
    Ok(sequence(&["\"{\"", &inner, "\"}\""]))
}

/// A string between the form's quotes.
fn string(writer: &mut Writer<'_>, form: &Invocation) -> Result<String, String> {
    if !writer.has("quoted") {
        let rest = writer.until("quoted_rest", "TEXT", form.quote)?;
        let body = format!("{} {rest}", writer.tag(form.quote));
        writer.rule("quoted", &body)?;
    }
    Ok("quoted".to_owned())
}

/// A constant in the form.
fn written(writer: &Writer<'_>, form: &Invocation, value: &Value) -> String {
    match value {
        Value::String(text) => {
            let quote = writer.tag(form.quote);
            sequence(&[&quote, &literal(text), &quote])
        }
        Value::Array(values) => {
            let values: Vec<String> = values
                .iter()
                .map(|value| written(writer, form, value))
                .collect();
            sequence(&["\"[\"", &values.join(" \",\" "), "\"]\""])
        }
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    let value = written(writer, form, value);
                    sequence(&[&literal(&format!("{key}:")), &value])
                })
                .collect();
            sequence(&["\"{\"", &members.join(" \",\" "), "\"}\""])
        }
        _ => literal(&value.to_string()),
    }
}

/// Any value.
fn any_value(writer: &mut Writer<'_>, form: &Invocation) -> Result<String, String> {
    if form.quote.is_empty() {
        return writer.schema(&Value::Bool(true));
    }
    if !writer.has("anything") {
        let string = string(writer, form)?;
        let scalar = writer.schema(&json!({ "type": ["number", "boolean", "null"] }))?;
        writer.rule(
            "anything",
            &format!(
                "{string} | {scalar} | \"[\" (anything (\",\" anything)*)? \"]\" | \"{{\" (member (\",\" member)*)? \"}}\""
            ),
        )?;
        writer.rule("member", "/[A-Za-z_][A-Za-z0-9_]{0,63}/ \":\" anything")?;
    }
    Ok("anything".to_owned())
}
