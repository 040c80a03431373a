//! The JSON value that a parameter's text stands for, by the schema of the tool's parameters.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::json_text::push_escaped;
use super::literal;

/// References and combinations that are followed.
const MAX_DEPTH: usize = 16;

/// The types that a schema allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::grammar) struct Types {
    pub text: bool,
    pub number: bool,
    pub integer: bool,
    pub boolean: bool,
    pub null: bool,
    pub array: bool,
    pub object: bool,
}

impl Types {
    const ALL: Types = Types {
        text: true,
        number: true,
        integer: true,
        boolean: true,
        null: true,
        array: true,
        object: true,
    };

    /// Only strings, so that no text has to be read as another value.
    pub(in crate::grammar) fn is_text(self) -> bool {
        let only_text = Types {
            text: true,
            ..Types::default()
        };
        self == only_text
    }

    /// The types of the parameter `name` of a tool with the schema `parameters`.
    pub(in crate::grammar) fn of_parameter(parameters: Option<&Value>, name: &str) -> Types {
        let Some(root) = parameters else {
            return Types::ALL;
        };
        match property(root, root, name, 0) {
            Some(schema) => Types::of(root, schema, 0),
            None => Types::ALL,
        }
    }

    /// The types of the values of `schema`, which is part of `root`.
    pub(in crate::grammar) fn of_schema(root: &Value, schema: &Value) -> Types {
        Types::of(root, schema, 0)
    }

    fn of(root: &Value, schema: &Value, depth: usize) -> Types {
        let Value::Object(members) = schema else {
            return Types::ALL;
        };
        if depth > MAX_DEPTH {
            return Types::ALL;
        }
        let mut types = Types::ALL;
        if let Some(target) = reference(root, schema) {
            types = types.both(Types::of(root, target, depth + 1));
        }
        match members.get("type") {
            Some(Value::String(name)) => types = types.both(Types::named(name)),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                types = types.both(
                    names
                        .map(Types::named)
                        .fold(Types::default(), Types::either),
                );
            }
            _ => {}
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            let all = values.iter().map(Types::of_value);
            types = types.both(all.fold(Types::default(), Types::either));
        }
        if let Some(value) = members.get("const") {
            types = types.both(Types::of_value(value));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = members.get(keyword) {
                let all = schemas
                    .iter()
                    .map(|schema| Types::of(root, schema, depth + 1));
                types = types.both(all.fold(Types::default(), Types::either));
            }
        }
        if let Some(Value::Array(schemas)) = members.get("allOf") {
            let all = schemas
                .iter()
                .map(|schema| Types::of(root, schema, depth + 1));
            types = all.fold(types, Types::both);
        }
        types
    }

    fn named(name: &str) -> Types {
        let mut types = Types::default();
        match name {
            "string" => types.text = true,
            "number" => (types.number, types.integer) = (true, true),
            "integer" => types.integer = true,
            "boolean" => types.boolean = true,
            "null" => types.null = true,
            "array" => types.array = true,
            "object" => types.object = true,
            _ => types = Types::ALL,
        }
        types
    }

    fn of_value(value: &Value) -> Types {
        Types::named(match value {
            Value::String(_) => "string",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::Bool(_) => "boolean",
            Value::Null => "null",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        })
    }

    fn combine(self, other: Types, of: fn(bool, bool) -> bool) -> Types {
        Types {
            text: of(self.text, other.text),
            number: of(self.number, other.number),
            integer: of(self.integer, other.integer),
            boolean: of(self.boolean, other.boolean),
            null: of(self.null, other.null),
            array: of(self.array, other.array),
            object: of(self.object, other.object),
        }
    }

    fn either(self, other: Types) -> Types {
        self.combine(other, |a, b| a || b)
    }

    fn both(self, other: Types) -> Types {
        self.combine(other, |a, b| a && b)
    }

    /// `text` as JSON: a value of one of these types, else the string that it is. Python's constants and
    /// literals are read, too.
    pub(super) fn to_json(self, text: &str) -> String {
        let trimmed = text.trim();
        let json = match serde_json::from_str::<IgnoredAny>(trimmed) {
            Ok(_) => Some(trimmed.to_owned()),
            Err(_) if trimmed.starts_with(['[', '{']) => literal::whole(trimmed),
            Err(_) => match trimmed {
                "True" => Some("true".to_owned()),
                "False" => Some("false".to_owned()),
                "None" => Some("null".to_owned()),
                _ => None,
            },
        };
        match json {
            Some(json) if !self.text || self.allows(&json) => json,
            _ => {
                let mut out = "\"".to_owned();
                text.chars().for_each(|c| push_escaped(c, &mut out));
                out + "\""
            }
        }
    }

    /// Whether the JSON value has one of the types. A string in quotes is text that has quotes.
    fn allows(self, json: &str) -> bool {
        match json.as_bytes().first() {
            Some(b'{') => self.object,
            Some(b'[') => self.array,
            Some(b't' | b'f') => self.boolean,
            Some(b'n') => self.null,
            Some(b'"') => false,
            _ => self.number || self.integer && !json.contains(['.', 'e', 'E']),
        }
    }
}

/// The schema of a property, with references followed.
fn property<'v>(root: &'v Value, schema: &'v Value, name: &str, depth: usize) -> Option<&'v Value> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(found) = schema.get("properties").and_then(|all| all.get(name)) {
        return Some(found);
    }
    let nested = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| schema.get(keyword)?.as_array())
        .flatten();
    reference(root, schema)
        .into_iter()
        .chain(nested)
        .find_map(|schema| property(root, schema, name, depth + 1))
}

/// The schema that `$ref` points to.
pub(in crate::grammar) fn reference<'v>(root: &'v Value, schema: &'v Value) -> Option<&'v Value> {
    let path = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(path)
}
