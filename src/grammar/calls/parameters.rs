//! The parameters of a tool one by one, for forms that write each on its own.

use serde_json::{Map, Value, json};

use crate::grammar::output::{Types, reference};

/// Members of a schema that only describe.
const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "$id",
    "deprecated",
    "$defs",
    "definitions",
];
/// References and alternatives that are followed.
const MAX_DEPTH: usize = 16;

/// One parameter.
pub(super) struct Parameter {
    pub name: String,
    pub is_required: bool,
    /// Its schema, which may refer to definitions.
    pub schema: Value,
}

/// The error for a name or a value that a form has no way to write.
pub(super) fn unwritable(text: &str) -> String {
    format!("{text:?} cannot be written in this model's form of calls")
}

/// The parameters of a schema of objects, in its order.
///
/// # Errors
/// Says what the schema demands of the object as a whole.
pub(super) fn parameters(schema: &Value) -> Result<Vec<Parameter>, String> {
    let members = schema.as_object().ok_or("must be an object")?;
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "strict",
    ];
    let is_known = |key: &str| known.contains(&key) || ANNOTATIONS.contains(&key);
    if let Some(key) = members.keys().find(|key| !is_known(key)) {
        return Err(format!(
            "{key:?} is not supported beside parameters in this model's form of calls"
        ));
    }
    let required: Vec<&str> = match members.get("required") {
        None => Vec::new(),
        Some(names) => {
            let names = names
                .as_array()
                .ok_or("\"required\" must be an array of strings")?;
            names.iter().filter_map(Value::as_str).collect()
        }
    };
    let none = Map::new();
    let properties = match members.get("properties") {
        None => &none,
        Some(properties) => properties
            .as_object()
            .ok_or("\"properties\" must be an object")?,
    };
    if let Some(name) = required
        .iter()
        .find(|name| !properties.contains_key(**name))
    {
        return Err(format!("{name:?} is required and not in \"properties\""));
    }
    let of = |(name, property): (&String, &Value)| Parameter {
        name: name.clone(),
        is_required: required.contains(&name.as_str()),
        schema: with_definitions(property, members),
    };
    Ok(properties.iter().map(of).collect())
}

/// A property's schema with the definitions of the whole.
fn with_definitions(property: &Value, root: &Map<String, Value>) -> Value {
    let Value::Object(members) = property else {
        return property.clone();
    };
    let mut members = members.clone();
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(key) {
            members.entry(key).or_insert_with(|| definitions.clone());
        }
    }
    Value::Object(members)
}

/// The form of a parameter's text that is not quoted.
pub(super) enum Plain {
    /// Any text, or text that matches these regular expressions.
    Text(Vec<String>),
    /// Exactly this string.
    Exactly(String),
    /// A boolean.
    Boolean,
    /// Null.
    Null,
    /// A JSON value, not a string.
    Json(Value),
}

/// The alternatives of a parameter's text.
///
/// # Errors
/// Says what cannot be enforced.
pub(super) fn plain(schema: &Value) -> Result<Vec<Plain>, String> {
    let mut found = Vec::new();
    alternatives(schema, schema, 0, &mut found)?;
    let is_free = |plain: &Plain| matches!(plain, Plain::Text(rules) if rules.is_empty());
    if found.iter().any(is_free) {
        // Whatever is written is a value of one of the types.
        let is_loose = |plain: &Plain| match plain {
            Plain::Json(schema) => is_type_only(schema),
            _ => true,
        };
        if !found.iter().all(is_loose) {
            return Err(MIXED.to_owned());
        }
        found.retain(is_free);
        found.truncate(1);
        return Ok(found);
    }
    // A number among constant strings would be read as one.
    let is_text = |plain: &Plain| match plain {
        Plain::Text(_) => true,
        Plain::Exactly(text) => {
            !matches!(text.as_str(), "true" | "false" | "null")
                && serde_json::from_str::<Value>(text).is_ok()
        }
        _ => false,
    };
    let has_text = found.iter().any(is_text);
    if has_text && found.iter().any(|plain| matches!(plain, Plain::Json(_))) {
        return Err(MIXED.to_owned());
    }
    Ok(found)
}

const MIXED: &str =
    "strings and other values with conditions cannot be told apart in this model's form of calls";

fn alternatives(
    root: &Value,
    schema: &Value,
    depth: usize,
    found: &mut Vec<Plain>,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("the schema is deeper than {MAX_DEPTH} levels"));
    }
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(true) => {
            found.push(Plain::Text(Vec::new()));
            return Ok(());
        }
        _ => return Err("must be a schema that allows something".to_owned()),
    };
    let conditions: Vec<&str> = members
        .keys()
        .map(String::as_str)
        .filter(|key| !ANNOTATIONS.contains(key))
        .collect();
    let types = Types::of_schema(root, schema);
    if !types.text && !types.boolean && !types.null {
        found.push(Plain::Json(with_definitions(
            schema,
            root.as_object().unwrap_or(members),
        )));
        return Ok(());
    }
    match conditions[..] {
        [] => found.push(Plain::Text(Vec::new())),
        ["$ref"] => {
            let target = reference(root, schema);
            let target = target.ok_or_else(|| format!("{} has no target", members["$ref"]))?;
            alternatives(root, target, depth + 1, found)?;
        }
        ["anyOf" | "oneOf"] => {
            for schema in members[conditions[0]].as_array().into_iter().flatten() {
                alternatives(root, schema, depth + 1, found)?;
            }
        }
        _ if members.contains_key("enum") || members.contains_key("const") => {
            listed_values(members, &conditions, found)?;
        }
        _ => typed(members, &conditions, found)?,
    }
    Ok(())
}

/// The values that `enum` and `const` allow.
fn listed_values(
    members: &Map<String, Value>,
    conditions: &[&str],
    found: &mut Vec<Plain>,
) -> Result<(), String> {
    let is_known = |key: &&str| ["enum", "const", "type"].contains(key);
    if let Some(key) = conditions.iter().find(|key| !is_known(key)) {
        return Err(unsupported(key));
    }
    let one = members.get("const").map(std::slice::from_ref);
    let many = members.get("enum").and_then(Value::as_array);
    let values = one.or(many.map(Vec::as_slice)).unwrap_or_default();
    let fits = |value: &&Value| match (members.get("const"), many) {
        (Some(_), Some(many)) => many.contains(value),
        _ => true,
    };
    found.extend(values.iter().filter(fits).map(constant));
    Ok(())
}

/// One alternative per type that `type` names.
fn typed(
    members: &Map<String, Value>,
    conditions: &[&str],
    found: &mut Vec<Plain>,
) -> Result<(), String> {
    let names: Vec<&str> = match members.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return Err(unsupported(conditions[0])),
    };
    for name in names {
        match name {
            "string" => found.push(Plain::Text(text_rules(members, conditions)?)),
            "boolean" => found.push(Plain::Boolean),
            "null" => found.push(Plain::Null),
            _ => {
                let mut members = members.clone();
                members.insert("type".to_owned(), name.into());
                found.push(Plain::Json(Value::Object(members)));
            }
        }
    }
    Ok(())
}

fn unsupported(keyword: &str) -> String {
    format!("{keyword:?} is not supported for this parameter in this model's form of calls")
}

fn constant(value: &Value) -> Plain {
    match value {
        Value::String(text) => Plain::Exactly(text.clone()),
        Value::Bool(_) | Value::Null => Plain::Exactly(value.to_string()),
        _ => Plain::Json(json!({ "const": value })),
    }
}

/// Regular expressions that a string must match.
fn text_rules(members: &Map<String, Value>, conditions: &[&str]) -> Result<Vec<String>, String> {
    let mut rules = Vec::new();
    let length = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(value) => match value.as_u64().filter(|&count| count <= MAX_LENGTH) {
            Some(count) => Ok(Some(count)),
            None => Err(format!("{key:?} must be at most {MAX_LENGTH}")),
        },
    };
    let (least, most) = (length("minLength")?, length("maxLength")?);
    if least.is_some() || most.is_some() {
        let most = most.map(|count| count.to_string()).unwrap_or_default();
        rules.push(format!("(?s:.{{{},{most}}})", least.unwrap_or(0)));
    }
    if let Some(pattern) = members.get("pattern") {
        rules.push(anchored(
            pattern.as_str().ok_or("\"pattern\" must be a string")?,
        )?);
    }
    let of_others = [
        "type",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "items",
        "properties",
        "required",
        "additionalProperties",
    ];
    match conditions.iter().find(|key| !of_others.contains(*key)) {
        Some(key) => Err(unsupported(key)),
        None => Ok(rules),
    }
}

/// The longest string whose length is enforced, in characters.
const MAX_LENGTH: u64 = 1024;

/// A pattern of JSON Schema, which matches anywhere, as an expression of whole strings.
fn anchored(pattern: &str) -> Result<String, String> {
    let (start, rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("(?s:.*)", pattern),
    };
    let is_escaped = rest.ends_with("\\$");
    let (rest, end) = match rest.strip_suffix('$').filter(|_| !is_escaped) {
        Some(rest) => (rest, ""),
        None => (rest, "(?s:.*)"),
    };
    // An anchor belongs to one alternative only.
    let is_bound = start.is_empty() || end.is_empty();
    if is_bound && rest.contains('|') && !is_one_group(rest) {
        return Err(format!(
            "\"pattern\": {pattern:?} has anchors in alternatives"
        ));
    }
    let slashes = rest.replace("\\/", "/").replace('/', "\\/");
    Ok(format!("{start}(?:{slashes}){end}"))
}

/// Whether every `|` is inside of parentheses or brackets.
fn is_one_group(pattern: &str) -> bool {
    let mut depth = 0usize;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => return false,
            _ => {}
        }
    }
    true
}

fn is_type_only(schema: &Value) -> bool {
    let is_condition = |key: &String| key != "type" && !ANNOTATIONS.contains(&key.as_str());
    schema
        .as_object()
        .is_some_and(|members| !members.keys().any(is_condition))
}
