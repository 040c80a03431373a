//! JSON values between JavaScript and serde. `serde_wasm_bindgen` reads structs by their fields, so
//! that unknown members would be ignored instead of refused.

use js_sys::{Array, Number, Object};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use wasm_bindgen::{JsCast, JsValue};

use super::errors::{message_of, to_js};
use crate::{Error, Result};

/// Reads a plain object of options; `undefined` is an empty one. `what` names the options in errors.
///
/// # Errors
/// [`Error::Internal`] naming what is unknown or has a wrong value: an error of the page's own code.
pub(super) fn options<T: DeserializeOwned>(given: &JsValue, what: &str) -> Result<T> {
    serde_json::from_value(object(given, what)?)
        .map_err(|error| Error::Internal(format!("invalid {what}: {error}")))
}

/// Reads a plain object as a JSON value.
pub(super) fn object(given: &JsValue, what: &str) -> Result<Value> {
    if given.is_undefined() {
        return Ok(Value::Object(Map::new()));
    }
    let value = value(given, 0);
    value.map_err(|why| Error::Internal(format!("invalid {what}: {why}")))
}

/// Deeper objects are cyclic or are no options.
const MAX_DEPTH: usize = 16;

fn value(given: &JsValue, depth: usize) -> std::result::Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("it is nested too deeply".into());
    }
    if given.is_null() {
        return Ok(Value::Null);
    }
    if let Some(flag) = given.as_bool() {
        return Ok(flag.into());
    }
    if let Some(text) = given.as_string() {
        return Ok(text.into());
    }
    if let Some(number) = given.as_f64() {
        if Number::is_safe_integer(given) {
            return Ok((number as i64).into());
        }
        return match number.is_finite() {
            true => Ok(number.into()),
            false => Err(format!("{number} is not a JSON number")),
        };
    }
    if Array::is_array(given) {
        let items = given.unchecked_ref::<Array>().iter();
        let items: std::result::Result<Vec<Value>, String> =
            items.map(|item| value(&item, depth + 1)).collect();
        return items.map(Value::Array);
    }
    if given.is_object() && !given.is_function() {
        let mut members = Map::new();
        for entry in Object::entries(given.unchecked_ref()).iter() {
            let entry: Array = entry.unchecked_into();
            let (name, member) = (entry.get(0), entry.get(1));
            // `JSON.stringify` leaves these members out, too.
            if member.is_undefined() {
                continue;
            }
            let name = name.as_string().unwrap_or_default();
            let member = value(&member, depth + 1).map_err(|why| format!("{name}: {why}"))?;
            members.insert(name, member);
        }
        return Ok(Value::Object(members));
    }
    Err(format!("{given:?} has no JSON form"))
}

/// A report as a plain object.
pub(super) fn to_object(report: &impl Serialize) -> std::result::Result<JsValue, JsValue> {
    // Flattened members come as a map, which JavaScript wants as an object.
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    let object = report.serialize(&serializer);
    object.map_err(|error| to_js(&Error::Internal(message_of(&error.into()))))
}
