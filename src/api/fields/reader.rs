//! Typed reading of a JSON object's members (specification 3): null is absent, nothing is coerced,
//! integral numbers are integers.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::api::error::fault;
use crate::{Error, RequestFault, Result};

/// The members of a request's body.
pub(in crate::api) struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    pub(in crate::api) fn new(members: Map<String, Value>) -> Fields {
        Fields { members }
    }

    /// The names of all members.
    pub(in crate::api) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Sets the member.
    pub(in crate::api) fn set(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }

    /// The member, unless absent or null.
    pub(in crate::api) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(in crate::api) fn string(&self, name: &str) -> Result<Option<&str>> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(in crate::api) fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "a boolean", Value::as_bool)
    }

    pub(in crate::api) fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>> {
        self.typed(name, "an object", Value::as_object)
    }

    pub(in crate::api) fn array(&self, name: &str) -> Result<Option<&[Value]>> {
        self.typed(name, "an array", |value| {
            value.as_array().map(Vec::as_slice)
        })
    }

    /// An integer in `range`.
    pub(in crate::api) fn integer(
        &self,
        name: &str,
        range: RangeInclusive<i128>,
    ) -> Result<Option<i128>> {
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

    /// A count of at least 0; values beyond `usize` become `usize::MAX`.
    pub(in crate::api) fn count(&self, name: &str) -> Result<Option<usize>> {
        let count = self.integer(name, 0..=i128::MAX)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// A number of any size.
    pub(in crate::api) fn number(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a number", Value::as_f64)
    }

    /// A number in `range`.
    pub(in crate::api) fn number_in(
        &self,
        name: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>> {
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
    pub(in crate::api) fn positive_number(&self, name: &str, end: f64) -> Result<Option<f64>> {
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
    pub(in crate::api) fn word(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>> {
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

    /// An array of token ids. Whether the vocabulary has them is checked once the model is known.
    pub(in crate::api) fn token_ids(&self, name: &str) -> Result<Option<Vec<u32>>> {
        let Some(elements) = self.array(name)? else {
            return Ok(None);
        };
        let id = |element: &Value| match integer(element) {
            None => Err(invalid_type(name, "made of integers", element)),
            Some(id) => u32::try_from(id)
                .map_err(|_| out_of_range(name, "made of the vocabulary's token ids", id)),
        };
        elements.iter().map(id).collect::<Result<_>>().map(Some)
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

/// Bytes of all strings of a field that are tokenized before the request is admitted.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;

/// Checks that the strings of the field `name`, with `bytes` bytes together, have at most `most`.
pub(super) fn check_text_bytes(name: &str, bytes: usize, most: usize) -> Result<()> {
    match bytes > most {
        true => {
            let bounds = format!("made of strings of at most {most} bytes together");
            Err(out_of_range(name, &bounds, format!("{bytes} bytes")))
        }
        false => Ok(()),
    }
}

/// Checks that a model with `vocab_size` tokens has the ids that the field `name` lists.
pub(in crate::api) fn check_ids(name: &str, ids: &[u32], vocab_size: usize) -> Result<()> {
    match ids.iter().find(|id| **id as usize >= vocab_size) {
        None => Ok(()),
        Some(id) => {
            let bounds = format!("made of ids below the vocabulary size {vocab_size}");
            Err(out_of_range(name, &bounds, id))
        }
    }
}

/// `value` as an integer, if it is an integral number; values beyond an i128 saturate.
pub(in crate::api) fn integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64()?;
    // Integer literals within i64 returned above, so a float equal to its lower end was rounded from
    // a literal below it.
    let below_i64 = number <= i64::MIN as f64;
    (number.fract() == 0.0).then_some((number as i128).saturating_sub(below_i64.into()))
}

pub(in crate::api) fn invalid_type(name: &str, expected: &str, value: &Value) -> Error {
    let message = format!("{name} must be {expected}, not {}", describe(value));
    fault(RequestFault::InvalidType, name, message)
}

/// The error for a member of the field `name` that has the wrong type.
pub(super) fn invalid_member(name: &str, member: &str, expected: &str, value: &Value) -> Error {
    let message = format!(
        "{name}.{member} must be {expected}, not {}",
        describe(value)
    );
    fault(RequestFault::InvalidType, name, message)
}

pub(in crate::api) fn out_of_range(
    name: &str,
    bounds: &str,
    given: impl std::fmt::Display,
) -> Error {
    let message = format!("{name} must be {bounds}, not {given}");
    fault(RequestFault::OutOfRange, name, message)
}

/// `name` has the right type, but `reason`.
pub(in crate::api) fn invalid_value(name: &str, reason: impl std::fmt::Display) -> Error {
    fault(
        RequestFault::InvalidValue,
        name,
        format!("{name}: {reason}"),
    )
}

/// The required field `name` is absent.
pub(in crate::api) fn missing(name: &str) -> Error {
    fault(
        RequestFault::MissingRequiredParameter,
        name,
        format!("{name} is required"),
    )
}

/// The field `name` is an object without the required member `member`.
pub(in crate::api) fn missing_member(name: &str, member: &str) -> Error {
    fault(
        RequestFault::MissingRequiredParameter,
        name,
        format!("{name} needs the member \"{member}\""),
    )
}

/// A member of a nested object, unless absent or null.
pub(in crate::api) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// The member `type` of the field `name`.
pub(in crate::api) fn kind(
    name: &str,
    members: &Fields,
    kinds: &[&'static str],
) -> Result<&'static str> {
    let kind = within(name, "type", members.word("type", kinds))?;
    kind.ok_or_else(|| {
        let message = format!("{name} needs the member \"type\"");
        fault(RequestFault::MissingRequiredParameter, name, message)
    })
}

/// The members of an object.
pub(in crate::api) fn members(fields: &Fields, name: &str) -> Result<Option<Fields>> {
    Ok(fields.object(name)?.cloned().map(Fields::new))
}

/// The result of reading the member `member` of the field `name`; errors name both.
pub(in crate::api) fn within<T>(name: &str, member: &str, read: Result<T>) -> Result<T> {
    read.map_err(|error| match error {
        Error::Request { fault, message, .. } => Error::Request {
            fault,
            param: Some(name.to_owned()),
            message: match message.strip_prefix(member) {
                Some(rest) => format!("{name}.{member}{rest}"),
                None => message,
            },
        },
        other => other,
    })
}

/// The member `type` of the field `name` or of an object in it has the unknown value `given`.
pub(in crate::api) fn unknown_type(name: &str, given: &str) -> Error {
    invalid_value(name, format!("\"{}\" is not a known type", shorten(given)))
}

/// A value for an error message, shortened: a prompt may be long.
pub(in crate::api) fn describe(value: &Value) -> String {
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
pub(in crate::api) fn shorten(text: &str) -> String {
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
