//! Typed reading of a JSON object's members (specification 3): null is absent, nothing is coerced,
//! integral numbers are integers. Knows no field by name.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::api::error::fault;
use crate::{RequestFault, Result};

/// Declares the fields of one group once: their names become the constant `FIELDS`, and their names,
/// types and documentation the TypeScript type of the group. Nothing is deserialized into the struct:
/// the group's `read` reads each field with the checks and the error codes of its own.
macro_rules! fields {
    ($(#[$meta:meta])* $group:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        pub(super) const FIELDS: &[&str] = &[$(stringify!($field)),*];

        $crate::api::request::fields::wire_types! {
            $(#[$meta])*
            #[ts(optional_fields = nullable)]
            pub(in crate::api) struct $group { $($(#[$field_meta])* $field: $type,)* }
        }
    };
}
pub(super) use fields;

/// Types that exist only for their TypeScript form.
macro_rules! wire_types {
    ($($item:item)*) => {
        $(
            #[cfg(test)]
            #[derive(ts_rs::TS)]
            #[allow(dead_code)]
            $item
        )*
    };
}
pub(super) use wire_types;

/// The members of a request's body.
pub(super) struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(members: Map<String, Value>) -> Fields {
        Fields { members }
    }

    /// The names of all members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The member, unless absent or null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<&str>> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>> {
        self.typed(name, "an object", Value::as_object)
    }

    pub(super) fn array(&self, name: &str) -> Result<Option<&[Value]>> {
        self.typed(name, "an array", |value| {
            value.as_array().map(Vec::as_slice)
        })
    }

    /// An integer in `range`.
    pub(super) fn integer(&self, name: &str, range: RangeInclusive<i128>) -> Result<Option<i128>> {
        let Some(number) = self.typed(name, "an integer", integer)? else {
            return Ok(None);
        };
        if range.contains(&number) {
            return Ok(Some(number));
        }
        let bounds = match (*range.start(), *range.end()) {
            (start, i128::MAX) => format!("at least {start}"),
            (start, end) => format!("from {start} to {end}"),
        };
        Err(out_of_range(name, &bounds, number))
    }

    /// A count of at least 0; what does not fit is as good as infinite.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>> {
        let count = self.integer(name, 0..=i128::MAX)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// A number of any size.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    /// A number in `range`.
    pub(super) fn number_in(&self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f64>> {
        let bounds = || match (*range.start(), *range.end()) {
            (start, f64::INFINITY) => format!("at least {start}"),
            (start, end) => format!("from {start} to {end}"),
        };
        match self.number(name)? {
            Some(number) if !range.contains(&number) => Err(out_of_range(name, &bounds(), number)),
            number => Ok(number),
        }
    }

    /// A number above 0 and at most `end`.
    pub(super) fn positive_number(&self, name: &str, end: f64) -> Result<Option<f64>> {
        match self.number(name)? {
            Some(number) if number <= 0.0 || number > end => {
                let bounds = match end {
                    f64::INFINITY => "above 0".to_owned(),
                    end => format!("above 0 and at most {end}"),
                };
                Err(out_of_range(name, &bounds, number))
            }
            number => Ok(number),
        }
    }

    /// One of the strings in `words`.
    pub(super) fn word(&self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>> {
        let Some(given) = self.string(name)? else {
            return Ok(None);
        };
        let known = words.iter().find(|word| **word == given);
        known.copied().map(Some).ok_or_else(|| {
            let words = words.join(", ");
            invalid_value(
                name,
                format!("\"{}\" is not one of {words}", shorten(given)),
            )
        })
    }

    fn typed<'a, T: 'a>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(invalid_type(name, expected, value)),
        }
    }
}

/// `value` as an integer, if its number is integral; beyond an i128 it saturates.
pub(super) fn integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64()?;
    // An integer literal that i64 holds came through above, so a float at the very edge was
    // rounded from a literal below it.
    let below_i64 = number <= i64::MIN as f64;
    (number.fract() == 0.0).then_some((number as i128).saturating_sub(below_i64.into()))
}

pub(super) fn invalid_type(name: &str, expected: &str, value: &Value) -> crate::Error {
    let message = format!("{name} must be {expected}, not {}", describe(value));
    fault(RequestFault::InvalidType, name, message)
}

pub(super) fn out_of_range(
    name: &str,
    bounds: &str,
    given: impl std::fmt::Display,
) -> crate::Error {
    let message = format!("{name} must be {bounds}, not {given}");
    fault(RequestFault::OutOfRange, name, message)
}

/// `name` has the right type, but `reason`.
pub(super) fn invalid_value(name: &str, reason: impl std::fmt::Display) -> crate::Error {
    fault(
        RequestFault::InvalidValue,
        name,
        format!("{name}: {reason}"),
    )
}

/// A value for an error message; never a whole prompt.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the string \"{}\"", shorten(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text, for error messages.
pub(super) fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 32;
    match text.char_indices().nth(MAX_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn fields(body: &str) -> Fields {
        Fields::new(serde_json::from_str(body).unwrap())
    }

    fn code(result: Result<impl Sized>) -> Option<RequestFault> {
        match result.err()? {
            Error::Request { fault, .. } => Some(fault),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn integers_are_exact_and_integral() {
        let fields = fields(
            r#"{"a":5.0,"b":5e0,"c":1.5,"d":9223372036854775807,"e":9223372036854775808,
                "f":-9223372036854775808,"g":1e300,"h":true,"i":"1","j":-0.0,"k":null,
                "l":-9223372036854775809,"m":-1e300}"#,
        );
        let int64 = i128::from(i64::MIN)..=i128::from(i64::MAX);
        for (name, expected) in [
            ("a", Some(5)),
            ("b", Some(5)),
            ("d", Some(i64::MAX)),
            ("f", Some(i64::MIN)),
            ("j", Some(0)),
            ("k", None),
            ("missing", None),
        ] {
            let number = fields.integer(name, int64.clone()).unwrap();
            assert_eq!(number, expected.map(i128::from), "{name}");
        }
        for name in ["c", "h", "i"] {
            let result = fields.integer(name, int64.clone());
            assert_eq!(code(result), Some(RequestFault::InvalidType), "{name}");
        }
        for name in ["e", "g", "l", "m"] {
            let result = fields.integer(name, int64.clone());
            assert_eq!(code(result), Some(RequestFault::OutOfRange), "{name}");
        }
        assert_eq!(fields.count("g"), Ok(Some(usize::MAX)));
        assert_eq!(code(fields.count("m")), Some(RequestFault::OutOfRange));
    }

    #[test]
    fn nothing_is_coerced() {
        let fields = fields(r#"{"one":1,"text":"true","yes":true,"list":[1]}"#);
        assert_eq!(code(fields.boolean("one")), Some(RequestFault::InvalidType));
        assert_eq!(
            code(fields.boolean("text")),
            Some(RequestFault::InvalidType)
        );
        assert_eq!(code(fields.number("yes")), Some(RequestFault::InvalidType));
        assert_eq!(code(fields.string("one")), Some(RequestFault::InvalidType));
        assert_eq!(code(fields.object("list")), Some(RequestFault::InvalidType));
    }

    #[test]
    fn messages_are_short() {
        let long = Value::String("é".repeat(1000));
        assert!(describe(&long).chars().count() < 60);
    }
}
