//! Methods of Python's values that the library lacks, and the filters that do the same. What they make is paid for before
//! it is made.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::budget::{PaidText, measure, pay_bytes};
use super::python;

/// The greatest width and precision in a format.
const MAX_FORMAT_NUMBER: usize = 1000;
/// Characters that `strip` may be given. Each is compared with each character of the text.
const MAX_STRIPPED_CHARS: usize = 64;
/// Bytes of a list's element with a short text.
const ELEMENT_BYTES: usize = 64;

/// Filters of strings and the methods that do the same.
const FILTERS: [(&str, &str); 7] = [
    ("upper", "upper"),
    ("lower", "lower"),
    ("title", "title"),
    ("capitalize", "capitalize"),
    ("trim", "strip"),
    ("split", "split"),
    ("lines", "splitlines"),
];

/// Adds the filters.
pub(super) fn add_filters(environment: &mut Environment<'static>) {
    for (filter, method) in FILTERS {
        environment.add_filter(
            filter,
            move |state: &mut State, value: &Value, first: Option<Value>, second: Option<Value>| {
                let text = python::text(state, value)?;
                let arguments: Vec<Value> = first.into_iter().chain(second).collect();
                call(state, &Value::from(text), method, &arguments)
            },
        );
    }
    environment.add_filter(
        "replace",
        |state: &mut State, value: &Value, old: &Value, new: &Value, options: Kwargs| {
            let strings =
                [value, old, new].map(|value| python::text(state, value).map(Value::from));
            let [value, old, new] = strings;
            let count: Option<i32> = options.get("count")?;
            options.assert_all_used()?;
            call(state, &value?, "replace", &[old?, new?, count.into()])
        },
    );
    environment.add_filter(
        "join",
        |state: &State, list: &Value, separator: Option<Value>, options: Kwargs| {
            let separator = match separator {
                Some(separator) => Some(separator),
                None => options.get("d")?,
            };
            let attribute: Option<String> = options.get("attribute")?;
            options.assert_all_used()?;
            let separator = python::text(state, &separator.unwrap_or_default())?;
            join(state, &separator, list, attribute.as_deref())
        },
    );
    environment.add_filter("indent", indent);
}

/// Calls a method of `value`.
pub(super) fn call(
    state: &mut State,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let first = arguments.first();
    match (value.kind(), value.as_str()) {
        (ValueKind::String, Some(text)) => {
            match (name, first.and_then(Value::as_str)) {
                ("removeprefix", Some(part)) => {
                    return Ok(text.strip_prefix(part).unwrap_or(text).into());
                }
                ("removesuffix", Some(part)) => {
                    return Ok(text.strip_suffix(part).unwrap_or(text).into());
                }
                _ => {}
            }
            if let ("join", Some(list)) = (name, first) {
                return join(state, text, list, None);
            }
            pay_for_method(state, text, name, arguments)?;
        }
        (ValueKind::Seq, _) => drop(measure(state, value)?),
        _ => {}
    }
    unknown_method_callback(state, value, name, arguments)
}

fn pay_for_method(state: &State, text: &str, name: &str, arguments: &[Value]) -> Result<(), Error> {
    let argument = |index: usize| arguments.get(index).and_then(Value::as_str);
    let bytes = match name {
        // A character becomes up to three.
        "upper" | "lower" | "title" | "capitalize" => text.len().saturating_mul(3),
        "replace" => {
            let (Some(old), Some(new)) = (argument(0), argument(1)) else {
                return Ok(());
            };
            pay_bytes(state, text.len())?;
            let most = arguments
                .get(2)
                .and_then(|count| usize::try_from(count.clone()).ok());
            let matches = text.matches(old).take(most.unwrap_or(usize::MAX)).count();
            let growth = new.len().saturating_sub(old.len());
            text.len().saturating_add(matches.saturating_mul(growth))
        }
        "split" | "splitlines" => {
            let parts = match argument(0) {
                Some(separator) => text.matches(separator).count(),
                None => text
                    .chars()
                    .filter(|character| character.is_whitespace())
                    .count(),
            };
            text.len()
                .saturating_add((parts + 1).saturating_mul(ELEMENT_BYTES))
        }
        "strip" | "lstrip" | "rstrip" => {
            let stripped = argument(0).unwrap_or_default();
            if stripped.chars().nth(MAX_STRIPPED_CHARS).is_some() {
                return Err(invalid(format!(
                    "{name} is given more than {MAX_STRIPPED_CHARS} characters"
                )));
            }
            text.len()
        }
        "startswith" | "endswith" => match arguments.first() {
            Some(parts) if parts.as_str().is_none() => measure(state, parts)?,
            _ => 0,
        },
        "format" => return pay_for_format(state, text, arguments),
        _ => 0,
    };
    pay_bytes(state, bytes)
}

/// Checks the keys of `%(key)s`. The library panics at a character beyond ASCII in a key of a format.
pub(super) fn check_printf_keys(format: &str) -> Result<(), Error> {
    for key in format.split("%(").skip(1) {
        after_key(key, ')')?;
    }
    Ok(())
}

/// Checks the keys of `{name[key]}`.
fn check_format_keys(format: &str) -> Result<(), Error> {
    let mut rest = format;
    let mut is_in_field = false;
    while let Some(at) = rest.find(['{', '[', '}']) {
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match found {
            b'[' if is_in_field => rest = after_key(rest, ']')?,
            b'[' => {}
            _ => is_in_field = found == b'{',
        }
    }
    Ok(())
}

/// The rest after the key at the start of `text`, which `end` ends.
fn after_key(text: &str, end: char) -> Result<&str, Error> {
    let (key, rest) = text.split_once(end).unwrap_or((text, ""));
    match key.is_ascii() {
        true => Ok(rest),
        false => Err(invalid("a key in a format is not ASCII".to_owned())),
    }
}

/// Pays for `text.format(...)`: each field may be any argument, padded to its width.
fn pay_for_format(state: &State, text: &str, arguments: &[Value]) -> Result<(), Error> {
    check_format_keys(text)?;
    let mut field_bytes = 64_usize;
    for argument in arguments {
        field_bytes = field_bytes.saturating_add(measure(state, argument)?);
    }
    let mut fields = 0_usize;
    for field in text.split('{').skip(1) {
        let field = field.split('}').next().unwrap_or(field);
        for digits in field.split(|character: char| !character.is_ascii_digit()) {
            let is_bounded = digits.is_empty()
                || digits
                    .parse::<usize>()
                    .is_ok_and(|number| number <= MAX_FORMAT_NUMBER);
            if !is_bounded {
                return Err(invalid(format!(
                    "a number in a format is more than {MAX_FORMAT_NUMBER}"
                )));
            }
        }
        fields += 1;
    }
    // A width is filled with a character of up to four bytes; a width and a precision.
    let field_bytes = field_bytes.saturating_add(5 * MAX_FORMAT_NUMBER);
    pay_bytes(
        state,
        text.len()
            .saturating_add(fields.saturating_mul(field_bytes)),
    )
}

/// The strings of the elements of `list`, or of their `attribute`, with `separator` between them.
fn join(
    state: &State,
    separator: &str,
    list: &Value,
    attribute: Option<&str>,
) -> Result<Value, Error> {
    let mut text = PaidText::new(state);
    for (index, element) in list.try_iter()?.enumerate() {
        state.consume_fuel(1)?;
        if index > 0 {
            text.push_str(separator)?;
        }
        let names = attribute.iter().flat_map(|path| path.split('.'));
        let element = names.fold(element, |value, name| {
            value.get_attr(name).unwrap_or_default()
        });
        python::write_text(&element, &mut text)?;
    }
    Ok(text.into_text().into())
}

/// The filter `indent`: spaces, or another string, before every line but the first.
fn indent(
    state: &State,
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = match width {
        Some(width) => Some(width),
        None => options.get("width")?,
    };
    let first = match first {
        Some(first) => first,
        None => options.get::<Option<bool>>("first")?.unwrap_or(false),
    };
    let blank = options.get::<Option<bool>>("blank")?.unwrap_or(false);
    options.assert_all_used()?;
    let indentation = indentation(width.as_ref().unwrap_or(&Value::from(4)))?;
    let value = python::text(state, value)?;
    let mut text = PaidText::new(state);
    for (index, line) in value.split_inclusive('\n').enumerate() {
        let is_blank = line.trim_end_matches(['\r', '\n']).is_empty();
        if (index > 0 || first) && (blank || !is_blank) {
            text.push_str(&indentation)?;
        }
        text.push_str(line)?;
    }
    Ok(text.into_text())
}

/// A level of indentation: a string, or a number of spaces.
pub(super) fn indentation(width: &Value) -> Result<String, Error> {
    const MAX_BYTES: usize = 64;
    let text = match (width.as_str(), width.as_i64()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(width)) if width <= MAX_BYTES as i64 => {
            " ".repeat(usize::try_from(width).unwrap_or(0))
        }
        (None, None) if width.is_true() => {
            return Err(invalid("an indentation is a number or a string".into()));
        }
        (None, None) => String::new(),
        (None, Some(_)) => return Err(too_wide(MAX_BYTES)),
    };
    match text.len() > MAX_BYTES {
        true => Err(too_wide(MAX_BYTES)),
        false => Ok(text),
    }
}

fn too_wide(most: usize) -> Error {
    invalid(format!("an indentation has more than {most} bytes"))
}

fn invalid(reason: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}
