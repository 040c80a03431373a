//! `prompt`, and `input` of embeddings, deserialized directly into strings and ids (specification 4.2 and
//! 19): a tree of JSON values would take twenty times the memory of the ids.

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
    /// At least one id, unless the field may be empty. Whether the vocabulary has them is checked once the model is known.
    Tokens(Vec<u32>),
    /// Strings and ids that follow each other; at least two parts.
    Mixed(Vec<PromptPart>),
    /// The messages of a chat.
    Conversation(Box<Conversation>),
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum PromptPart {
    Text(String),
    Token(u32),
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
    /// Whether strings and ids may be mixed.
    pub is_mixed: bool,
    /// Whether an empty array is a prompt without tokens; otherwise it is an error.
    pub may_be_empty: bool,
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

/// The treatment of the elements of an array.
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

/// An array of token ids, or also of strings, in this field.
#[derive(Clone, Copy)]
struct Parts {
    field: &'static str,
    is_mixed: bool,
}

impl ReadArray for Parts {
    type Output = Result<PartList>;

    fn read<'de, S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Output, S::Error> {
        let mut parts = Ok(PartList::default());
        while let Some(element) = elements.next_element_seed(NodeReader(Skip))? {
            if let Ok(known) = &mut parts {
                match self.part(element) {
                    Ok(part) => known.push(part),
                    Err(error) => parts = Err(error),
                }
            }
        }
        Ok(parts)
    }
}

impl Parts {
    fn part<A>(self, element: Node<A>) -> Result<PromptPart> {
        match element {
            Node::Other(Value::String(text)) if self.is_mixed => Ok(PromptPart::Text(text)),
            element => token_id(self.field, &element).map(PromptPart::Token),
        }
    }
}

/// The parts of a prompt. Ids alone take four bytes each.
enum PartList {
    Ids(Vec<u32>),
    Mixed(Vec<PromptPart>),
}

impl Default for PartList {
    fn default() -> PartList {
        PartList::Ids(Vec::new())
    }
}

impl PartList {
    fn push(&mut self, part: PromptPart) {
        match (&mut *self, part) {
            (PartList::Ids(ids), PromptPart::Token(id)) => ids.push(id),
            (PartList::Mixed(parts), part) => parts.push(part),
            (PartList::Ids(ids), text) => {
                let ids = std::mem::take(ids).into_iter().map(PromptPart::Token);
                *self = PartList::Mixed(ids.chain([text]).collect());
            }
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, PartList::Ids(ids) if ids.is_empty())
    }
}

impl From<PartList> for Prompt {
    fn from(parts: PartList) -> Prompt {
        match parts {
            PartList::Ids(ids) => Prompt::Tokens(ids),
            PartList::Mixed(parts) => Prompt::Mixed(parts),
        }
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
        let PromptReader {
            field, is_mixed, ..
        } = self;
        let parts = Parts { field, is_mixed };
        while let Some(element) = elements.next_element_seed(NodeReader(parts))? {
            count += 1;
            // Prompts beyond the limit are counted, not kept.
            // Strings may still turn out to be parts of one prompt.
            let is_kept = is_mixed || count <= self.max_prompts;
            prompts = prompts.and_then(|prompts| match is_mixed {
                true => prompts.with_mixed(field, element, is_kept),
                false => prompts.with(field, element, is_kept),
            });
        }
        Ok(prompts.and_then(|prompts| match prompts {
            Prompts::None if self.may_be_empty => Ok(vec![Prompt::Tokens(Vec::new())]),
            Prompts::None => Err(invalid_value(field, "must not be an empty array")),
            Prompts::Ids(parts) => Ok(vec![parts.into()]),
            Prompts::Strings(_) | Prompts::IdLists(_) if count > self.max_prompts => {
                let bounds = format!("at most {} {}s", self.max_prompts, self.field);
                Err(out_of_range(self.field, &bounds, count))
            }
            Prompts::Strings(prompts) | Prompts::IdLists(prompts) => Ok(prompts),
        }))
    }
}

/// The outer array so far; its first element determines the kind of all.
enum Prompts {
    None,
    /// One prompt.
    Ids(PartList),
    Strings(Vec<Prompt>),
    IdLists(Vec<Prompt>),
}

impl Prompts {
    /// Same as [`Self::with`], for lists where strings and ids may be mixed. Strings alone are prompts of their own until
    /// an id follows, which makes all of them one prompt; beside an array every text is a prompt.
    fn with_mixed(
        self,
        field: &str,
        element: Node<Result<PartList>>,
        is_kept: bool,
    ) -> Result<Prompts> {
        let text = |prompt| match prompt {
            Prompt::Text(text) => PromptPart::Text(text),
            other => unreachable!("only strings are collected as strings: {other:?}"),
        };
        match (self, element) {
            (Prompts::Strings(prompts), Node::Other(number @ Value::Number(_))) => {
                let mut parts = PartList::Mixed(prompts.into_iter().map(text).collect());
                parts.push(PromptPart::Token(token_id::<()>(
                    field,
                    &Node::Other(number),
                )?));
                Ok(Prompts::Ids(parts))
            }
            (Prompts::Strings(prompts), element @ Node::Array(_)) => {
                Prompts::IdLists(prompts).with(field, element, is_kept)
            }
            (Prompts::Ids(mut parts), Node::Other(Value::String(text))) => {
                parts.push(PromptPart::Text(text));
                Ok(Prompts::Ids(parts))
            }
            (Prompts::IdLists(mut prompts), Node::Other(Value::String(text))) => {
                prompts.extend(is_kept.then_some(Prompt::Text(text)));
                Ok(Prompts::IdLists(prompts))
            }
            (prompts, element) => prompts.with(field, element, is_kept),
        }
    }

    fn with(self, field: &str, element: Node<Result<PartList>>, is_kept: bool) -> Result<Prompts> {
        let prompts = match (self, &element) {
            (Prompts::None, Node::Other(Value::Number(_))) => Prompts::Ids(PartList::default()),
            (Prompts::None, Node::Other(Value::String(_))) => Prompts::Strings(Vec::new()),
            (Prompts::None, Node::Array(_)) => Prompts::IdLists(Vec::new()),
            (Prompts::None, Node::Other(other)) => {
                let expected = "a string, token ids, or an array of either";
                return Err(invalid_type(field, expected, other));
            }
            (prompts, _) => prompts,
        };
        match (prompts, element) {
            (Prompts::Ids(mut ids), element) => {
                ids.push(PromptPart::Token(token_id(field, &element)?));
                Ok(Prompts::Ids(ids))
            }
            (Prompts::Strings(mut prompts), Node::Other(Value::String(text))) => {
                prompts.extend(is_kept.then_some(Prompt::Text(text)));
                Ok(Prompts::Strings(prompts))
            }
            (Prompts::IdLists(mut prompts), Node::Array(ids)) => {
                let ids = ids?;
                if ids.is_empty() {
                    return Err(invalid_value(field, "must not hold an empty array"));
                }
                prompts.extend(is_kept.then(|| ids.into()));
                Ok(Prompts::IdLists(prompts))
            }
            (Prompts::Strings(_), other) => Err(mixed(field, "a string", &other)),
            (_, other) => Err(mixed(field, "an array of token ids", &other)),
        }
    }
}
