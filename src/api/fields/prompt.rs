//! `prompt`, and `input` of embeddings, deserialized directly into strings and ids (specification 4.2 and
//! 18): a tree of JSON values would take twenty times the memory of the ids.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::conversation::Conversation;
use super::reader::{describe, integer, invalid_type, invalid_value, missing, out_of_range};
use crate::Result;

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Prompt {
    /// A text to tokenize; may be empty.
    Text(String),
    /// At least one id. Whether the vocabulary has them is checked once the model is known.
    Tokens(Vec<u32>),
    /// The messages of a chat.
    Conversation(Box<Conversation>),
}

/// Reads the four shapes of a field as a list of at least one prompt. An invalid shape is part of the
/// value, so that the rest of the body is still parsed.
#[derive(Clone, Copy)]
pub(in crate::api) struct PromptReader {
    /// The field's name.
    pub field: &'static str,
    pub max_prompts: usize,
    /// Whether null is an empty text; otherwise it is an absent field.
    pub null_is_text: bool,
}

impl<'de> DeserializeSeed<'de> for PromptReader {
    type Value = Result<Vec<Prompt>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        Ok(match NodeReader(self).deserialize(json)? {
            Node::Array(prompts) => prompts,
            // Like OpenAI's omitted prompt: the start of a document.
            Node::Other(Value::Null) if self.null_is_text => Ok(vec![Prompt::Text(String::new())]),
            Node::Other(Value::Null) => Err(missing(self.field)),
            Node::Other(Value::String(text)) => Ok(vec![Prompt::Text(text)]),
            Node::Other(other) => Err(invalid_type(self.field, "a string or an array", &other)),
        })
    }
}

/// A JSON value. An array is read as `A`; the members of an object are dropped.
enum Node<A> {
    Array(A),
    Other(Value),
}

impl<A> Node<A> {
    fn describe(&self) -> String {
        match self {
            Node::Array(_) => describe(&Value::Array(Vec::new())),
            Node::Other(value) => describe(value),
        }
    }
}

/// What to do with the elements of an array.
trait ReadArray {
    type Output;
    /// Reads all elements.
    fn read<'de, S: SeqAccess<'de>>(self, elements: S) -> Result<Self::Output, S::Error>;
}

struct NodeReader<R>(R);

impl<'de, R: ReadArray> DeserializeSeed<'de> for NodeReader<R> {
    type Value = Node<R::Output>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, R: ReadArray> Visitor<'de> for NodeReader<R> {
    type Value = Node<R::Output>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Other(Value::Null))
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Self::Value, E> {
        Ok(Node::Other(boolean.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Node::Other(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Node::Other(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Node::Other(number.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Node::Other(text.into()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, elements: S) -> Result<Self::Value, S::Error> {
        self.0.read(elements).map(Node::Array)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Node::Other(Value::Object(Map::new())))
    }
}

/// Skips an array.
struct Skip;

impl ReadArray for Skip {
    type Output = ();

    fn read<'de, S: SeqAccess<'de>>(self, mut elements: S) -> Result<(), S::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// An array of token ids, in this field.
struct TokenIds(&'static str);

impl ReadArray for TokenIds {
    type Output = Result<Vec<u32>>;

    fn read<'de, S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Output, S::Error> {
        let mut ids = Ok(Vec::new());
        while let Some(element) = elements.next_element_seed(NodeReader(Skip))? {
            if let Ok(known) = &mut ids {
                match token_id(self.0, &element) {
                    Ok(id) => known.push(id),
                    Err(error) => ids = Err(error),
                }
            }
        }
        Ok(ids)
    }
}

fn token_id<A>(field: &str, element: &Node<A>) -> Result<u32> {
    match element {
        Node::Other(number @ Value::Number(_)) => integer(number)
            .and_then(|id| u32::try_from(id).ok())
            .ok_or_else(|| out_of_range(field, "made of the vocabulary's token ids", number)),
        other => Err(mixed(field, "a token id", other)),
    }
}

fn mixed<A>(field: &str, expected: &str, found: &Node<A>) -> crate::Error {
    let found = found.describe();
    let message = format!("its elements must be of one kind: {expected} expected, not {found}");
    invalid_value(field, message)
}

impl ReadArray for PromptReader {
    type Output = Result<Vec<Prompt>>;

    fn read<'de, S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Output, S::Error> {
        let mut prompts = Ok(Prompts::None);
        let mut count = 0;
        while let Some(element) = elements.next_element_seed(NodeReader(TokenIds(self.field)))? {
            count += 1;
            // Prompts beyond the limit are counted, not kept.
            let is_kept = count <= self.max_prompts;
            prompts = prompts.and_then(|prompts| prompts.with(self.field, element, is_kept));
        }
        Ok(prompts.and_then(|prompts| match prompts {
            Prompts::None => Err(invalid_value(self.field, "must not be an empty array")),
            Prompts::Ids(ids) => Ok(vec![Prompt::Tokens(ids)]),
            Prompts::Texts(_) | Prompts::IdLists(_) if count > self.max_prompts => {
                let bounds = format!("at most {} {}s", self.max_prompts, self.field);
                Err(out_of_range(self.field, &bounds, count))
            }
            Prompts::Texts(prompts) | Prompts::IdLists(prompts) => Ok(prompts),
        }))
    }
}

/// The outer array so far; its first element determines the kind of all.
enum Prompts {
    None,
    /// One prompt.
    Ids(Vec<u32>),
    Texts(Vec<Prompt>),
    IdLists(Vec<Prompt>),
}

impl Prompts {
    fn with(self, field: &str, element: Node<Result<Vec<u32>>>, is_kept: bool) -> Result<Prompts> {
        let prompts = match (self, &element) {
            (Prompts::None, Node::Other(Value::Number(_))) => Prompts::Ids(Vec::new()),
            (Prompts::None, Node::Other(Value::String(_))) => Prompts::Texts(Vec::new()),
            (Prompts::None, Node::Array(_)) => Prompts::IdLists(Vec::new()),
            (Prompts::None, Node::Other(other)) => {
                let expected = "a string, token ids, or an array of either";
                return Err(invalid_type(field, expected, other));
            }
            (prompts, _) => prompts,
        };
        match (prompts, element) {
            (Prompts::Ids(mut ids), element) => {
                ids.push(token_id(field, &element)?);
                Ok(Prompts::Ids(ids))
            }
            (Prompts::Texts(mut prompts), Node::Other(Value::String(text))) => {
                prompts.extend(is_kept.then_some(Prompt::Text(text)));
                Ok(Prompts::Texts(prompts))
            }
            (Prompts::IdLists(mut prompts), Node::Array(ids)) => {
                let ids = ids?;
                if ids.is_empty() {
                    return Err(invalid_value(field, "must not hold an empty array"));
                }
                prompts.extend(is_kept.then_some(Prompt::Tokens(ids)));
                Ok(Prompts::IdLists(prompts))
            }
            (Prompts::Texts(_), other) => Err(mixed(field, "a string", &other)),
            (_, other) => Err(mixed(field, "an array of token ids", &other)),
        }
    }
}
