//! Whether a value is a JSON schema (specification 9.4): keywords of the drafts have the types that the drafts give them.
//! `schema` and the compiler decide which keywords this crate can enforce.

use serde_json::{Map, Value};

/// Deepest nesting that is checked. JSON is read to this depth.
const MAX_DEPTH: usize = 128;

/// Checks the keywords of `schema` and of all schemas in it.
///
/// # Errors
/// A message for humans that names the keyword and its value.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    check(schema, schema, 0)
}

fn check(root: &Value, schema: &Value, depth: usize) -> Result<(), String> {
    let members = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(members) if depth <= MAX_DEPTH => members,
        Value::Object(_) => return Err(format!("it is deeper than {MAX_DEPTH} levels")),
        other => return Err(format!("{} is no schema", shown(other))),
    };
    for (keyword, value) in members {
        check_keyword(root, keyword, value, depth + 1)?;
    }
    Ok(())
}

#[expect(
    clippy::too_many_lines,
    reason = "a flat match with an arm per keyword"
)]
fn check_keyword(root: &Value, keyword: &str, value: &Value, depth: usize) -> Result<(), String> {
    let expect = |is_right: bool, what: &str| match is_right {
        true => Ok(()),
        false => Err(format!("{keyword:?} must be {what}, not {}", shown(value))),
    };
    let all = |mut schemas: &mut dyn Iterator<Item = &Value>| {
        // Called on the reference, because a trait object has no such method.
        Iterator::try_for_each(&mut schemas, |schema| check(root, schema, depth))
    };
    match keyword {
        "type" => match value {
            Value::Array(names) => {
                expect(!names.is_empty(), "one or more types")?;
                names.iter().try_for_each(check_type)
            }
            name => check_type(name),
        },
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            expect(value.is_object(), "an object of schemas")?;
            all(&mut value.as_object().into_iter().flat_map(Map::values))
        }
        "anyOf" | "allOf" | "oneOf" | "prefixItems" => {
            let schemas = value.as_array().filter(|schemas| !schemas.is_empty());
            expect(schemas.is_some(), "an array of one or more schemas")?;
            all(&mut schemas.into_iter().flatten())
        }
        "items" if value.is_array() => all(&mut value.as_array().into_iter().flatten()),
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else" => check(root, value, depth),
        "enum" => {
            let values = value.as_array();
            expect(
                values.is_some_and(|values| !values.is_empty()),
                "an array of one or more values",
            )
        }
        // Draft 3, and some libraries, mark a property itself with a boolean.
        "required" if value.is_boolean() => Ok(()),
        "required" => {
            let names = value.as_array();
            let is_right = names.is_some_and(|names| names.iter().all(Value::is_string));
            expect(is_right, "an array of strings")
        }
        "minimum" | "maximum" => expect(value.is_number(), "a number"),
        "exclusiveMinimum" | "exclusiveMaximum" => {
            expect(value.is_number() || value.is_boolean(), "a number")
        }
        "multipleOf" => expect(value.as_f64().is_some_and(|it| it > 0.0), "above 0"),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            let is_count = value
                .as_f64()
                .is_some_and(|it| it >= 0.0 && it.fract() == 0.0);
            expect(is_count, "a non-negative integer")
        }
        "pattern" | "format" => expect(value.is_string(), "a string"),
        "uniqueItems" => expect(value.is_boolean(), "a boolean"),
        "$ref" => {
            expect(value.is_string(), "a string")?;
            let path = value.as_str().and_then(|text| text.strip_prefix("#/"));
            // Names of anchors and escapes are the compiler's matter.
            let has_target = path.is_none_or(|path| {
                path.is_empty() || path.contains('%') || root.pointer(&format!("/{path}")).is_some()
            });
            expect(has_target, "the path of a schema")
        }
        _ => Ok(()),
    }
}

fn check_type(name: &Value) -> Result<(), String> {
    const TYPES: [&str; 7] = [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ];
    match name.as_str() {
        Some(known) if TYPES.contains(&known) => Ok(()),
        _ => Err(format!("\"type\": {} is no type", shown(name))),
    }
}

/// The start of the value's text.
fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_have_their_types() {
        for schema in [
            json!(true),
            json!({}),
            json!({"type": ["string", "null"], "x-vendor": 5, "description": 1}),
            json!({"properties": {"a": {"not": {"type": "integer"}}}, "required": ["a"]}),
            json!({"items": [{"const": 1}], "additionalItems": false}),
            json!({"minimum": 1, "exclusiveMinimum": true, "minLength": 2.0}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}),
            json!({"properties": {"a": {"type": "string", "required": true}}}),
            json!({"uniqueItems": true, "if": {}, "then": {}, "format": "odd", "pattern": "(?=a)"}),
        ] {
            assert_eq!(check_schema(&schema), Ok(()), "{schema}");
        }
        for (schema, word) in [
            (json!("x"), "schema"),
            (json!({"type": "int"}), "int"),
            (json!({"type": []}), "type"),
            (json!({"type": 5}), "5"),
            (json!({"properties": {"a": {"type": "str"}}}), "str"),
            (json!({"properties": []}), "properties"),
            (json!({"items": {"anyOf": []}}), "anyOf"),
            (json!({"not": 5}), "5"),
            (json!({"enum": []}), "enum"),
            (json!({"enum": "a"}), "enum"),
            (json!({"required": ["a", 1]}), "required"),
            (json!({"minimum": "1"}), "minimum"),
            (json!({"multipleOf": 0}), "multipleOf"),
            (json!({"minLength": -1}), "minLength"),
            (json!({"minItems": 1.5}), "minItems"),
            (json!({"pattern": 1}), "pattern"),
            (json!({"uniqueItems": 1}), "uniqueItems"),
            (json!({"$ref": "#/$defs/none"}), "$ref"),
            (json!({"$defs": {"a": {"type": "nil"}}}), "nil"),
        ] {
            let error = check_schema(&schema).unwrap_err();
            assert!(error.contains(word), "{schema}: {error}");
        }
    }
}
