//! Values as Python writes them: `str`, `repr` and floats.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Containers within containers. Deeper ones come from hostile templates only.
pub(super) const MAX_NESTING: usize = 128;

/// Pays for a step. Lists may be lazy and long, and contain the same list many times.
type Pay<'p> = &'p mut dyn FnMut(u64) -> Result<(), Error>;

/// Python's `str(value)`.
pub(super) fn str(value: &Value, pay: Pay<'_>) -> Result<String, Error> {
    let mut text = String::new();
    match value.as_str() {
        Some(given) => text.push_str(given),
        None => repr(value, 0, pay, &mut text)?,
    }
    Ok(text)
}

/// Appends Python's `repr(value)`.
fn repr(value: &Value, depth: usize, pay: Pay<'_>, text: &mut String) -> Result<(), Error> {
    pay(1 + value.as_str().map_or(0, |text| text.len()) as u64 / 16)?;
    if depth > MAX_NESTING {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::String => repr_str(value.as_str().unwrap_or_default(), text),
        ValueKind::Number => text.push_str(&number(value)),
        ValueKind::Map => {
            text.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                repr(&key, depth + 1, pay, text)?;
                text.push_str(": ");
                repr(&value.get_item(&key)?, depth + 1, pay, text)?;
            }
            text.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => {
            let [open, close] = match value.is_tuple() {
                true => ['(', ')'],
                false => ['[', ']'],
            };
            text.push(open);
            for (index, element) in value.try_iter()?.enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                repr(&element, depth + 1, pay, text)?;
            }
            if value.is_tuple() && value.len() == Some(1) {
                text.push(',');
            }
            text.push(close);
        }
        _ => text.push_str(&value.to_string()),
    }
    Ok(())
}

pub(super) fn too_deep() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("a value is nested more than {MAX_NESTING} deep"),
    )
}

/// Single quotes, unless the text has single quotes and no double quotes.
fn repr_str(given: &str, text: &mut String) {
    let quote = match given.contains('\'') && !given.contains('"') {
        true => '"',
        false => '\'',
    };
    text.push(quote);
    for character in given.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if character == quote => {
                text.push('\\');
                text.push(character);
            }
            // Of what Python escapes, the characters that texts have.
            _ if character.is_control() || matches!(character, '\u{a0}' | '\u{ad}') => {
                text.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push(quote);
}

/// An integer or a float.
pub(super) fn number(value: &Value) -> String {
    match (value.is_integer(), f64::try_from(value.clone())) {
        (false, Ok(number)) => float(number),
        _ => value.to_string(),
    }
}

/// Python's `repr` of a float: the shortest digits that read back as the same number, with an exponent below 1e-4 and
/// from 1e16 on.
fn float(number: f64) -> String {
    if !number.is_finite() {
        return match (number.is_nan(), number > 0.0) {
            (true, _) => "nan".to_owned(),
            (false, true) => "inf".to_owned(),
            (false, false) => "-inf".to_owned(),
        };
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (-4..16).contains(&exponent) {
        // `Debug` writes the same digits without an exponent, and ".0" after integers, up to 1e16.
        let plain = format!("{number}");
        return match plain.contains('.') {
            true => plain,
            false => plain + ".0",
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
