//! The text that the completion is expected to be: a guess that makes its tokens come sooner and changes none of them (specification
//! 4.7).

use serde_json::Value;

use super::declare::{Field, Or, fields};
use super::kinds::{Count, Shape, count, shape};
use super::reader::{Fields, invalid_member, invalid_type, invalid_value, member, missing_member};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    DraftFields {
        /// Text that the completion is expected to be, or to resemble, such as one that it repeats with changes. Its tokens are
        /// verified several at once; the completion is the same as without it.
        prediction: Field<Shape> = shape(
            "object",
            "{ type: \"content\", content: string | { type: \"text\", text: string }[] }",
        ),
        /// The same as `prediction`, as a string or token ids; not used beside it.
        speculation: Field<Shape> = shape("string or array of ids", "string | number[]").of("Fireworks"),
        /// The maximum number of tokens that are guessed at once; 0: none.
        n_max("speculative.n_max"): Field<Count> = count(0).of("llama.cpp"),
        /// The fewest tokens that are guessed at once.
        n_min("speculative.n_min"): Or<Count> = count(0).or(0).of("llama.cpp"),
    }
}

/// The fields of this group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::api) struct Drafting {
    pub prediction: Option<Prediction>,
    pub max_tokens: Option<usize>,
    pub min_tokens: usize,
}

/// The text that the completion is expected to be.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) enum Prediction {
    Text(String),
    /// Token ids, which may be outside the vocabulary.
    Ids(Vec<u32>),
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<Drafting> {
    let speculation = speculation(fields)?;
    Ok(Drafting {
        prediction: prediction(fields)?.or(speculation),
        max_tokens: DraftFields::n_max.read(fields, switches)?,
        min_tokens: DraftFields::n_min.read(fields, switches)?,
    })
}

fn prediction(fields: &Fields) -> Result<Option<Prediction>> {
    let name = DraftFields::prediction.name;
    let Some(given) = fields.object(name)? else {
        return Ok(None);
    };
    match member(given, "type") {
        Some(Value::String(kind)) if kind == "content" => {}
        Some(Value::String(_)) => {
            return Err(invalid_value(name, "its type must be \"content\""));
        }
        Some(other) => return Err(invalid_member(name, "type", "a string", other)),
        None => return Err(missing_member(name, "type")),
    }
    let text = match member(given, "content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(part).collect::<Result<String>>()?,
        Some(other) => {
            return Err(invalid_member(
                name,
                "content",
                "a string or an array",
                other,
            ));
        }
        None => return Err(missing_member(name, "content")),
    };
    Ok(Some(Prediction::Text(text)))
}

fn part(part: &Value) -> Result<&str> {
    let is_text = part["type"] == "text";
    match part["text"].as_str().filter(|_| is_text) {
        Some(text) => Ok(text),
        None => Err(invalid_value(
            DraftFields::prediction.name,
            "the parts of its content must be {\"type\": \"text\", \"text\": …}",
        )),
    }
}

fn speculation(fields: &Fields) -> Result<Option<Prediction>> {
    let name = DraftFields::speculation.name;
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(Prediction::Text(text.clone()))),
        Some(Value::Array(_)) => Ok(fields.token_ids(name)?.map(Prediction::Ids)),
        Some(other) => Err(invalid_type(
            name,
            "a string or an array of token ids",
            other,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use serde_json::json;

    fn of(members: Value) -> Result<Drafting> {
        let members = members.as_object().expect("an object").clone();
        read(&Fields::new(members), &Switches::default())
    }

    fn text(text: &str) -> Option<Prediction> {
        Some(Prediction::Text(text.into()))
    }

    #[test]
    fn a_prediction_is_a_text_or_its_parts() {
        let content = json!({"prediction": {"type": "content", "content": "ab"}});
        assert_eq!(of(content).unwrap().prediction, text("ab"));
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let content = json!({"prediction": {"type": "content", "content": parts}});
        assert_eq!(of(content).unwrap().prediction, text("ab"));
        assert_eq!(
            of(json!({"prediction": null})).unwrap(),
            Drafting::default()
        );
    }

    #[test]
    fn the_vendors_forms_are_read() {
        let given = json!({"speculation": "x", "speculative.n_max": 3, "speculative.n_min": 2});
        let drafting = Drafting {
            prediction: text("x"),
            max_tokens: Some(3),
            min_tokens: 2,
        };
        assert_eq!(of(given).unwrap(), drafting);
        let ids = of(json!({"speculation": [1, 7]})).unwrap().prediction;
        assert_eq!(ids, Some(Prediction::Ids(vec![1, 7])));
        let both = json!({"speculation": [1], "prediction": {"type": "content", "content": "y"}});
        assert_eq!(of(both).unwrap().prediction, text("y"));
    }

    #[test]
    fn other_values_are_refused() {
        for given in [
            json!({"prediction": "x"}),
            json!({"prediction": {"content": "x"}}),
            json!({"prediction": {"type": "text", "content": "x"}}),
            json!({"prediction": {"type": 1, "content": "x"}}),
            json!({"prediction": {"type": "content"}}),
            json!({"prediction": {"type": "content", "content": 1}}),
            json!({"prediction": {"type": "content", "content": ["x"]}}),
            json!({"prediction": {"type": "content", "content": [{"type": "image", "text": "x"}]}}),
            json!({"speculation": 1}),
            json!({"speculation": ["x"]}),
            json!({"speculative.n_max": -1}),
            json!({"speculative.n_min": 0.5}),
        ] {
            let field = given.as_object().unwrap().keys().next().cloned();
            match of(given.clone()) {
                Err(Error::Request { param, .. }) => assert_eq!(param, field, "{given}"),
                other => panic!("{given}: {other:?}"),
            }
        }
    }
}
