//! Converts JSON to the values of templates. Members keep their order.

use minijinja::Value;
use serde_json::Value as Json;

/// The value of `json`.
pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(boolean) => Value::from(*boolean),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => list(elements),
        Json::Object(members) => Value::from_pairs(
            members
                .iter()
                .map(|(name, json)| (name.clone(), value(json))),
        ),
    }
}

/// The list of `elements`.
pub(super) fn list(elements: &[Json]) -> Value {
    Value::from(elements.iter().map(value).collect::<Vec<_>>())
}

/// Bytes of all strings in `elements`, and a few per value.
pub(super) fn text_bytes(elements: &[Json]) -> usize {
    let bytes = |json: &Json| match json {
        Json::String(text) => text.len(),
        Json::Array(elements) => text_bytes(elements),
        Json::Object(members) => members
            .iter()
            .map(|(name, json)| name.len() + text_bytes(std::slice::from_ref(json)))
            .sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    };
    elements.iter().map(|json| 8 + bytes(json)).sum()
}

/// Copies the reasoning of a message to all names that templates read: `reasoning_content`, `reasoning` and `thinking`.
/// `transformers` does the same.
pub fn alias_reasoning(message: &mut Json) {
    const NAMES: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];
    let Some(message) = message.as_object_mut() else {
        return;
    };
    let given = NAMES.iter().find_map(|name| message.get(*name)).cloned();
    if let Some(given) = given {
        for name in NAMES {
            message.entry(name).or_insert_with(|| given.clone());
        }
    }
}
