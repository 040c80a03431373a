//! From a body's bytes to its members (specification 1.6). The field of prompts is read separately, because
//! only it can be large.

use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Deserializer, Map};

use super::prompt::{Prompt, PromptReader};
use super::reader::Fields;
use crate::api::error::fault_without_param;
use crate::{Error, RequestFault, Result};

/// A body that is a JSON object.
pub(in crate::api) struct Body {
    /// All members but the field of prompts.
    pub fields: Fields,
    /// The value of that field; `None` if it is absent.
    pub prompts: Option<Result<Vec<Prompt>>>,
}

impl Body {
    /// Parses a body whose prompts are in `prompt`. With `is_mixed` an array of it may hold strings and ids.
    ///
    /// # Errors
    /// The same as those of [`Body::parse_with`].
    pub(in crate::api) fn parse(body: &[u8], max_prompts: usize, is_mixed: bool) -> Result<Body> {
        let prompts = PromptReader {
            field: "prompt",
            max_prompts,
            null_is_text: true,
            is_mixed,
            may_be_empty: false,
        };
        Body::parse_with(body, prompts)
    }

    /// Parses a body. A repeated key counts with its last value.
    ///
    /// # Errors
    /// `invalid_json` or `invalid_body`. An invalid field of prompts is not an error yet: a valid one
    /// may follow.
    pub(in crate::api) fn parse_with(body: &[u8], prompts: PromptReader) -> Result<Body> {
        Body::read(body, Some(prompts))
    }

    /// Parses a body without a field of prompts.
    ///
    /// # Errors
    /// `invalid_json` or `invalid_body`.
    pub(in crate::api) fn parse_fields(body: &[u8]) -> Result<Fields> {
        Ok(Body::read(body, None)?.fields)
    }

    fn read(body: &[u8], prompts: Option<PromptReader>) -> Result<Body> {
        let not_utf8 = |error: std::str::Utf8Error| {
            let message = format!("the body is not UTF-8 from byte {} on", error.valid_up_to());
            fault_without_param(RequestFault::InvalidJson, message)
        };
        let text = std::str::from_utf8(body).map_err(not_utf8)?;
        if !text
            .trim_start_matches([' ', '\t', '\n', '\r'])
            .starts_with('{')
        {
            serde_json::from_str::<IgnoredAny>(text).map_err(not_json)?;
            let message = "the body must be a JSON object";
            return Err(fault_without_param(RequestFault::InvalidBody, message));
        }
        let mut deserializer = Deserializer::from_str(text);
        let body = deserializer
            .deserialize_map(BodyReader(prompts))
            .map_err(not_json)?;
        deserializer.end().map_err(not_json)?;
        Ok(body)
    }
}

fn not_json(error: serde_json::Error) -> Error {
    let message = format!("the body is not valid JSON: {error}");
    fault_without_param(RequestFault::InvalidJson, message)
}

struct BodyReader(Option<PromptReader>);

impl<'de> Visitor<'de> for BodyReader {
    type Value = Body;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut given: M) -> Result<Body, M::Error> {
        let mut members = Map::new();
        let mut prompts = None;
        while let Some(name) = given.next_key::<String>()? {
            match self.0.filter(|reader| name == reader.field) {
                Some(reader) => prompts = Some(given.next_value_seed(reader)?),
                None => drop(members.insert(name, given.next_value()?)),
            }
        }
        Ok(Body {
            fields: Fields::new(members),
            prompts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &[u8]) -> Option<RequestFault> {
        match Body::parse(body, 128, false).err()? {
            Error::Request { fault, param, .. } => {
                assert_eq!(param, None);
                Some(fault)
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn invalid_json() {
        let bodies: [&[u8]; 16] = [
            b"",
            b" ",
            b"{",
            b"[",
            b"[1,]",
            b"{\"a\":1,}",
            b"{\"a\":NaN}",
            b"{} x",
            b"[] x",
            b"{\"a\":\"\xff\"}",
            b"\xff",
            b"\xef\xbb\xbf{}",
            b"{'a':1}",
            b"{\"a\":\"\n\"}",
            b"{\"a\":\"\\ud800\"}",
            b"{\"prompt\":[1,2,01]}",
        ];
        for body in bodies {
            assert_eq!(code(body), Some(RequestFault::InvalidJson), "{body:?}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let depth = 1_000_000;
        let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for body in [
            "[".repeat(depth),
            format!(r#"{{"a":{nested}}}"#),
            r#"{"a":"#.repeat(depth),
        ] {
            assert_eq!(code(body.as_bytes()), Some(RequestFault::InvalidJson));
        }
        assert_eq!(code(nested.as_bytes()), Some(RequestFault::InvalidBody));
        let body = Body::parse(format!(r#"{{"prompt":{nested}}}"#).as_bytes(), 128, false);
        assert!(matches!(body.unwrap().prompts, Some(Err(_))));
    }

    #[test]
    fn json_that_is_not_an_object() {
        for body in ["[]", "\"x\"", "null", "3", " true "] {
            assert_eq!(code(body.as_bytes()), Some(RequestFault::InvalidBody));
        }
        assert_eq!(code(b" \t\r\n{ } "), None);
    }

    #[test]
    fn the_last_of_a_repeated_key_wins() {
        let body = br#"{"a":"x","prompt":5,"a":2,"prompt":"y"}"#;
        let body = Body::parse(body, 128, false).unwrap();
        assert_eq!(body.fields.count("a"), Ok(Some(2)));
        assert_eq!(body.prompts, Some(Ok(vec![Prompt::Text("y".to_owned())])));
    }
}
