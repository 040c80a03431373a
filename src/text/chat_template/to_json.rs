//! The filter `tojson`: Python's `json.dumps` with `ensure_ascii=False`. Unlike Jinja's own it escapes nothing for HTML
//! and keeps the order of members.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::budget::{MAX_NESTING, PaidText, measure, pay_bytes, pay_sorting, too_deep};
use super::marker::Marker;
use super::methods;
use super::python;

/// The layout of JSON.
struct Layout {
    /// Repeated per level. `None` keeps everything in one line.
    indent: Option<String>,
    between_elements: String,
    after_key: String,
    sorts_keys: bool,
    is_ascii: bool,
    marker: Marker,
}

/// `value | tojson(ensure_ascii, indent, separators, sort_keys)`.
pub(super) fn filter(
    state: &State,
    value: &Value,
    options: &Kwargs,
    marker: Marker,
) -> Result<String, Error> {
    let indent = match options.get::<Option<Value>>("indent")? {
        None => None,
        Some(indent) if indent.is_none() => None,
        Some(indent) => Some(methods::indentation(&indent)?),
    };
    let separators: Option<Value> = options.get("separators")?;
    let separator = |index: usize, default: &str| match &separators {
        Some(given) if !given.is_none() => {
            let separator = given.get_item_by_index(index)?;
            python::text(state, &separator)
        }
        _ => Ok(default.to_owned()),
    };
    let layout = Layout {
        between_elements: separator(0, if indent.is_some() { "," } else { ", " })?,
        after_key: separator(1, ": ")?,
        sorts_keys: is_set(options, "sort_keys")?,
        is_ascii: is_set(options, "ensure_ascii")?,
        indent,
        marker,
    };
    options.assert_all_used()?;
    let mut text = PaidText::new(state);
    layout.write(value, 0, &mut text)?;
    Ok(text.into_text())
}

fn is_set(options: &Kwargs, name: &str) -> Result<bool, Error> {
    let given: Option<Value> = options.get(name)?;
    Ok(given.is_some_and(|value| value.is_true()))
}

impl Layout {
    fn write(&self, value: &Value, depth: usize, text: &mut PaidText) -> Result<(), Error> {
        // The same list may be in a value many times.
        text.state().consume_fuel(1)?;
        if depth > MAX_NESTING {
            return Err(too_deep());
        }
        match value.kind() {
            ValueKind::None => text.push_str("null")?,
            ValueKind::Bool => text.push_str(if value.is_true() { "true" } else { "false" })?,
            ValueKind::Number => text.push_str(match &*python::number(value) {
                "nan" => "NaN",
                "inf" => "Infinity",
                "-inf" => "-Infinity",
                number => number,
            })?,
            ValueKind::String => self.write_string(value.as_str().unwrap_or_default(), text)?,
            ValueKind::Seq | ValueKind::Iterable => {
                let elements = value.try_iter()?;
                self.write_all(depth, ['[', ']'], elements, text, |element, text| {
                    self.write(&element, depth + 1, text)
                })?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sorts_keys {
                    pay_sorting(text.state(), &Value::from(keys.clone()))?;
                    keys.sort_by_cached_key(Value::to_string);
                }
                self.write_all(depth, ['{', '}'], keys.into_iter(), text, |key, text| {
                    if key.as_str().is_none() {
                        pay_bytes(text.state(), measure(text.state(), &key)?)?;
                    }
                    self.write_string(&key_text(&key), text)?;
                    text.push_str(&self.after_key)?;
                    self.write(&value.get_item(&key)?, depth + 1, text)
                })?;
            }
            other => {
                return Err(Error::new(
                    ErrorKind::BadSerialization,
                    format!("{other} is not JSON"),
                ));
            }
        }
        Ok(())
    }

    fn write_all(
        &self,
        depth: usize,
        [open, close]: [char; 2],
        elements: impl Iterator<Item = Value>,
        text: &mut PaidText,
        mut write: impl FnMut(Value, &mut PaidText) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let new_line = |depth: usize, text: &mut PaidText| match &self.indent {
            Some(indent) => {
                text.push('\n')?;
                (0..depth).try_for_each(|_| text.push_str(indent))
            }
            None => Ok(()),
        };
        text.push(open)?;
        let mut is_empty = true;
        for element in elements {
            if !is_empty {
                text.push_str(&self.between_elements)?;
            }
            is_empty = false;
            new_line(depth + 1, text)?;
            write(element, text)?;
        }
        if !is_empty {
            new_line(depth, text)?;
        }
        text.push(close)
    }

    fn write_string(&self, string: &str, text: &mut PaidText) -> Result<(), Error> {
        text.push('"')?;
        for character in string.chars() {
            match character {
                '"' => text.push_str("\\\"")?,
                '\\' => text.push_str("\\\\")?,
                '\n' => text.push_str("\\n")?,
                '\r' => text.push_str("\\r")?,
                '\t' => text.push_str("\\t")?,
                '\u{8}' => text.push_str("\\b")?,
                '\u{c}' => text.push_str("\\f")?,
                _ if character < ' ' || (self.is_ascii && self.is_escaped(character)) => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        text.push_str(&format!("\\u{unit:04x}"))?;
                    }
                }
                _ => text.push(character)?,
            }
        }
        text.push('"')
    }

    fn is_escaped(&self, character: char) -> bool {
        !character.is_ascii() && !self.marker.is(character)
    }
}

/// A key as JSON's keys are: text.
fn key_text(key: &Value) -> String {
    match key.kind() {
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => key.to_string().to_lowercase(),
        ValueKind::Number => python::number(key),
        _ => key.to_string(),
    }
}
