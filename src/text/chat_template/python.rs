//! Values as Python writes them: `str`, `repr` and floats.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::budget::{MAX_NESTING, PaidText, too_deep};

/// Python's `str(value)`.
pub(super) fn text(state: &State, value: &Value) -> Result<String, Error> {
    let mut text = PaidText::new(state);
    write_text(value, &mut text)?;
    Ok(text.into_text())
}

/// Appends Python's `str(value)`.
pub(super) fn write_text(value: &Value, text: &mut PaidText) -> Result<(), Error> {
    match value.as_str() {
        Some(given) => text.push_str(given),
        None => repr(value, 0, text),
    }
}

/// Appends Python's `repr(value)`.
fn repr(value: &Value, depth: usize, text: &mut PaidText) -> Result<(), Error> {
    // The same list may be in a value many times, and lazy lists may be long.
    text.state().consume_fuel(1)?;
    if depth > MAX_NESTING {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::String => repr_str(value.as_str().unwrap_or_default(), text)?,
        ValueKind::Number => text.push_str(&number(value))?,
        ValueKind::Map => {
            text.push('{')?;
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    text.push_str(", ")?;
                }
                repr(&key, depth + 1, text)?;
                text.push_str(": ")?;
                repr(&value.get_item(&key)?, depth + 1, text)?;
            }
            text.push('}')?;
        }
        ValueKind::Seq | ValueKind::Iterable if value.len().is_some() => {
            let [open, close] = match value.is_tuple() {
                true => ['(', ')'],
                false => ['[', ']'],
            };
            text.push(open)?;
            for (index, element) in value.try_iter()?.enumerate() {
                if index > 0 {
                    text.push_str(", ")?;
                }
                repr(&element, depth + 1, text)?;
            }
            if value.is_tuple() && value.len() == Some(1) {
                text.push(',')?;
            }
            text.push(close)?;
        }
        _ => text.push_str(&value.to_string())?,
    }
    Ok(())
}

/// Single quotes, unless the text has single quotes and no double quotes.
fn repr_str(given: &str, text: &mut PaidText) -> Result<(), Error> {
    let quote = match given.contains('\'') && !given.contains('"') {
        true => '"',
        false => '\'',
    };
    text.push(quote)?;
    for character in given.chars() {
        match character {
            '\\' => text.push_str("\\\\")?,
            '\n' => text.push_str("\\n")?,
            '\r' => text.push_str("\\r")?,
            '\t' => text.push_str("\\t")?,
            _ if character == quote => {
                text.push('\\')?;
                text.push(character)?;
            }
            // The characters of strings that Python escapes.
            _ if character.is_control() || matches!(character, '\u{a0}' | '\u{ad}') => {
                text.push_str(&format!("\\x{:02x}", u32::from(character)))?;
            }
            _ => text.push(character)?,
        }
    }
    text.push(quote)
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
