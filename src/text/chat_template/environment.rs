//! The environment that `transformers` gives to chat templates: Jinja2 with trimmed blocks, Python's methods, and a few
//! functions and filters.

use std::sync::Arc;
use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, Value};
use minijinja::{filters, tests};

use super::budget::{PaidText, TimeLimit, measure, pay_bytes, pay_sorting};
use super::marker::Marker;
use super::operators::{JOINED, PRODUCT};
use super::rewrite::{CHECKED, CONTINUES, ITERABLE, LISTED};
use super::strftime::LocalTime;
use super::{methods, python, to_json};

/// Nested blocks, macros and calls. A page's wasm stack has 1 MB.
const MAX_DEPTH: usize = 100;
/// Characters of the message of `raise_exception`.
const MAX_MESSAGE_CHARS: usize = 2000;

/// The message of `raise_exception`.
#[derive(Debug)]
pub(super) struct Raised(pub String);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// The environment without a template. Renderings end after `time_limit`, counted from now.
pub(super) fn new(
    now: LocalTime,
    marker: Marker,
    fuel: u64,
    time_limit: Duration,
) -> Environment<'static> {
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
    let limit = Arc::new(TimeLimit::new(time_limit));
    let time = limit.clone();
    environment.set_formatter(move |output, state, value| {
        time.check()?;
        match value.as_str() {
            Some(text) => output.write_str(text)?,
            None => output.write_str(&python::text(state, value)?)?,
        }
        Ok(())
    });
    environment.set_unknown_method_callback(methods::call);
    add_statements(&mut environment, &limit);
    add_functions(&mut environment, now);
    add_tests(&mut environment);
    methods::add_filters(&mut environment);
    add_filters(&mut environment, marker);
    environment
}

/// Adds the functions that `rewrite` and `operators` put into templates.
fn add_statements(environment: &mut Environment<'static>, limit: &Arc<TimeLimit>) {
    let time = limit.clone();
    environment.add_function(CONTINUES, move || time.check().map(|()| true));
    let time = limit.clone();
    environment.add_function(CHECKED, move |state: &State, value: Value| {
        time.check()?;
        measure(state, &value)?;
        Ok::<_, Error>(value)
    });
    for (name, is_checked) in [(ITERABLE, false), (LISTED, true)] {
        let time = limit.clone();
        environment.add_function(name, move |state: &State, value: Value| {
            time.check()?;
            if value.is_none() {
                return Err(invalid("none is not iterable"));
            }
            if !is_checked {
                measure(state, &value)?;
            }
            Ok(value)
        });
    }
    environment.add_function(JOINED, |state: &State, values: Rest<Value>| {
        let mut text = PaidText::new(state);
        for value in values.iter() {
            python::write_text(value, &mut text)?;
        }
        Ok::<_, Error>(text.into_text())
    });
    environment.add_function(PRODUCT, |state: &State, factors: Rest<Value>| {
        let mut factors = factors.0.into_iter();
        let first = factors.next().unwrap_or_default();
        factors.try_fold(first, |left, right| product(state, &left, &right))
    });
}

fn add_functions(environment: &mut Environment<'static>, now: LocalTime) {
    // Prints everything there is.
    environment.remove_global("debug");
    environment.add_function(
        "raise_exception",
        |state: &State, message: &Value| -> Result<Value, _> {
            let message = python::text(state, message)?;
            let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
            Err(invalid("raised by the template").with_source(Raised(message)))
        },
    );
    environment.add_function("strftime_now", move |state: &State, format: &str| {
        // "%c" becomes 24 bytes.
        pay_bytes(state, format.len().saturating_mul(12))?;
        Ok::<_, Error>(now.strftime(format))
    });
}

/// Tests that compare values or convert them to text, which is not charged by the library.
fn add_tests(environment: &mut Environment<'static>) {
    type Compare = fn(&Value, &Value) -> bool;
    let comparisons: [(&[&str], Compare); 6] = [
        (&["eq", "equalto", "=="], |a, b| a == b),
        (&["ne", "!="], |a, b| a != b),
        (&["lt", "lessthan", "<"], |a, b| a < b),
        (&["le", "<="], |a, b| a <= b),
        (&["gt", "greaterthan", ">"], |a, b| a > b),
        (&["ge", ">="], |a, b| a >= b),
    ];
    for (names, compare) in comparisons {
        for name in names {
            environment.add_test(*name, move |state: &State, a: &Value, b: &Value| {
                measure(state, a)?;
                measure(state, b)?;
                Ok::<_, Error>(compare(a, b))
            });
        }
    }
    environment.add_test("in", |state: &State, value: &Value, list: &Value| {
        measure(state, value)?;
        measure(state, list)?;
        tests::is_in(state, value, list)
    });
    environment.add_test(
        "startingwith",
        |state: &State, value: &Value, part: &Value| {
            Ok::<_, Error>(python::text(state, value)?.starts_with(&python::text(state, part)?))
        },
    );
    environment.add_test(
        "endingwith",
        |state: &State, value: &Value, part: &Value| {
            Ok::<_, Error>(python::text(state, value)?.ends_with(&python::text(state, part)?))
        },
    );
    environment.add_test("iterable", |value: &Value| {
        value.kind() != ValueKind::None && value.try_iter().is_ok()
    });
}

fn add_filters(environment: &mut Environment<'static>, marker: Marker) {
    // Jinja2 does not have these filters, or a prompt has no use for them.
    for name in ["pprint", "chain", "zip"] {
        environment.remove_filter(name);
    }
    environment.add_filter("string", python::text);
    environment.add_filter(
        "tojson",
        move |state: &State, value: &Value, options: Kwargs| {
            to_json::filter(state, value, &options, marker)
        },
    );
    environment.add_filter("safe", |state: &State, value: &Value| {
        python::text(state, value).map(Value::from_safe_string)
    });
    for name in ["escape", "e"] {
        environment.add_filter(name, |state: &mut State, value: &Value| {
            if value.is_safe() {
                return Ok(value.clone());
            }
            let text = python::text(state, value)?;
            pay_bytes(state, text.len().saturating_mul(6))?;
            filters::escape(state, &text.into())
        });
    }
    add_costly_filters(environment);
    add_sorting_filters(environment);
}

/// Filters whose result may be much larger than what they are given. It is paid for before.
fn add_costly_filters(environment: &mut Environment<'static>) {
    environment.add_filter(
        "format",
        |state: &mut State, format: &Value, values: Rest<ValueOrKwargs>| {
            let values: Vec<Value> = values
                .0
                .into_iter()
                .map(ValueOrKwargs::into_value)
                .collect();
            let text = format.as_str().unwrap_or_default();
            methods::check_printf_keys(text)?;
            let fields = text.matches('%').count();
            for value in &values {
                pay_bytes(state, measure(state, value)?.saturating_mul(fields))?;
            }
            filters::format(
                state,
                format,
                Rest(values.into_iter().map(ValueOrKwargs::from).collect()),
            )
        },
    );
    environment.add_filter(
        "sum",
        |state: &State,
         list: Value,
         attribute: Option<&str>,
         start: Option<Value>,
         options: Kwargs| {
            let start = match start {
                Some(start) => start,
                None => options
                    .get::<Option<Value>>("start")?
                    .unwrap_or(Value::from(0)),
            };
            match start.kind() {
                ValueKind::String => return Err(invalid("sum cannot add strings: use join")),
                ValueKind::Number => {}
                // Each sum is a list of its own.
                _ => state.consume_fuel((list.len().unwrap_or(0) as u64).saturating_pow(2) / 16)?,
            }
            filters::sum(state, list, attribute, Some(start), options)
        },
    );
}

/// Filters that compare elements, which is paid for.
fn add_sorting_filters(environment: &mut Environment<'static>) {
    environment.add_filter("sort", |state: &State, list: Value, options: Kwargs| {
        pay_sorting(state, &list)?;
        filters::sort(state, list, options)
    });
    environment.add_filter("min", |state: &State, list: Value, options: Kwargs| {
        pay_sorting(state, &list)?;
        filters::min(state, list, options)
    });
    environment.add_filter("max", |state: &State, list: Value, options: Kwargs| {
        pay_sorting(state, &list)?;
        filters::max(state, list, options)
    });
    environment.add_filter("unique", |state: &State, list: Value, options: Kwargs| {
        pay_sorting(state, &list)?;
        filters::unique(state, list, options)
    });
    environment.add_filter("dictsort", |state: &State, map: &Value, options: Kwargs| {
        pay_sorting(state, map)?;
        filters::dictsort(map, options)
    });
    environment.add_filter(
        "groupby",
        |state: &State, list: Value, attribute: Option<&str>, options: Kwargs| {
            pay_sorting(state, &list)?;
            filters::groupby(list, attribute, options)
        },
    );
}

/// `left * right`: the product of numbers, or a string or list so many times.
fn product(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    let is_repeated = |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::String | ValueKind::Seq | ValueKind::Iterable
        )
    };
    let (repeated, count) = match (is_repeated(left), is_repeated(right)) {
        (true, false) => (left, right),
        (false, true) => (right, left),
        (false, false) => return number_product(left, right),
        (true, true) => return Err(invalid("tried to multiply two strings or lists")),
    };
    let count = i128::try_from(count.clone())?.max(0);
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    pay_bytes(state, measure(state, repeated)?.saturating_mul(count))?;
    if let Some(text) = repeated.as_str() {
        return Ok(text.repeat(count).into());
    }
    let elements: Vec<Value> = repeated.try_iter()?.collect();
    const ELEMENT_BYTES: usize = 32;
    pay_bytes(
        state,
        elements
            .len()
            .saturating_mul(ELEMENT_BYTES)
            .saturating_mul(count),
    )?;
    let length = elements.len() * count;
    let elements: Vec<Value> = elements.into_iter().cycle().take(length).collect();
    Ok(match repeated.is_tuple() {
        true => Tuple::from(elements).into(),
        false => elements.into(),
    })
}

fn number_product(left: &Value, right: &Value) -> Result<Value, Error> {
    let is_integer = |value: &Value| value.is_integer() || value.kind() == ValueKind::Bool;
    let is_number = |value: &Value| is_integer(value) || value.kind() == ValueKind::Number;
    if !is_number(left) || !is_number(right) {
        let message = format!("tried to multiply {} and {}", left.kind(), right.kind());
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    if !is_integer(left) || !is_integer(right) {
        let factor = |value: &Value| f64::try_from(value.clone());
        return Ok((factor(left)? * factor(right)?).into());
    }
    let factor = |value: &Value| i128::try_from(value.clone());
    let product = factor(left)?.checked_mul(factor(right)?);
    let product = product.ok_or_else(|| invalid("a product is too large"))?;
    Ok(i64::try_from(product).map_or_else(|_| Value::from(product), Value::from))
}

fn invalid(reason: &'static str) -> Error {
    Error::new(ErrorKind::InvalidOperation, reason)
}
