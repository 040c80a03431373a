//! The environment that `transformers` gives to chat templates: Jinja2 with trimmed blocks, Python's methods, and a few
//! functions and filters.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::marker::Marker;
use super::python::{self, MAX_NESTING};
use super::rewrite::{CHECKED, ITERABLE};
use super::strftime::LocalTime;
use super::to_json;

/// Nested blocks, macros and calls. A page's wasm stack has 1 MB.
const MAX_DEPTH: usize = 100;

/// The message of `raise_exception`.
#[derive(Debug)]
pub(super) struct Raised(pub String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// The environment without a template.
pub(super) fn new(now: LocalTime, marker: Marker, fuel: u64) -> Environment<'static> {
    let mut environment = Environment::new();
    // Delimiters are the usual ones, so that building cannot fail.
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(MAX_DEPTH);
    environment.set_formatter(|output, state, value| {
        match value.as_str() {
            Some(text) => output.write_str(text)?,
            None => output.write_str(&text_of(state, value)?)?,
        }
        Ok(())
    });
    environment.set_unknown_method_callback(method);
    environment.add_function("raise_exception", |message: String| -> Result<Value, _> {
        let error = Error::new(ErrorKind::InvalidOperation, "raised by the template");
        Err(error.with_source(Raised(message)))
    });
    environment.add_function(CHECKED, |state: &State, value: Value| {
        check(state, &value, 0)?;
        Ok::<_, Error>(value)
    });
    environment.add_function(ITERABLE, |state: &State, value: Value| {
        if value.is_none() {
            let message = "none is not iterable";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        check(state, &value, 0)?;
        Ok(value)
    });
    environment.add_test("iterable", |value: &Value| {
        value.kind() != ValueKind::None && value.try_iter().is_ok()
    });
    environment.add_function("strftime_now", move |format: &str| now.strftime(format));
    environment.add_filter("string", |state: &State, value: &Value| {
        text_of(state, value)
    });
    environment.add_filter(
        "tojson",
        move |state: &State, value: &Value, options: Kwargs| {
            to_json::filter(state, value, &options, marker)
        },
    );
    environment
}

/// Visits everything in `value`, which costs fuel, down to a depth at which dropping and comparing it is safe.
fn check(state: &State, value: &Value, depth: usize) -> Result<(), Error> {
    let is_map = value.kind() == ValueKind::Map;
    if !is_map && !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(());
    }
    if depth > MAX_NESTING {
        return Err(python::too_deep());
    }
    // Lists that are concatenated lazily are slow to visit.
    const COST: u64 = 4;
    state.consume_fuel(COST * value.len().unwrap_or(0) as u64)?;
    for element in value.try_iter()? {
        state.consume_fuel(COST)?;
        match is_map {
            true => check(state, &value.get_item(&element)?, depth + 1)?,
            false => check(state, &element, depth + 1)?,
        }
    }
    Ok(())
}

/// Python's `str`.
fn text_of(state: &State, value: &Value) -> Result<String, Error> {
    python::str(value, &mut |cost| state.consume_fuel(cost))
}

/// Methods of Python's values that the library lacks.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    if value.kind() == ValueKind::String
        && let (Some(text), [argument]) = (value.as_str(), args)
        && let Some(argument) = argument.as_str()
    {
        match name {
            "removeprefix" => return Ok(text.strip_prefix(argument).unwrap_or(text).into()),
            "removesuffix" => return Ok(text.strip_suffix(argument).unwrap_or(text).into()),
            _ => {}
        }
    }
    unknown_method_callback(state, value, name, args)
}
