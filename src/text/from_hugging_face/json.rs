//! The JSON of `tokenizer.json`, without the meaning of its parts.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::super::bpe::parse_merge;
use crate::{Error, Result};

/// The file. The parts that transform text are read later, one by one, so that an unsupported part can
/// be named.
#[derive(Deserialize)]
pub struct TokenizerJson {
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub normalizer: Value,
    #[serde(default)]
    pub pre_tokenizer: Value,
    #[serde(default)]
    pub post_processor: Value,
    pub model: ModelJson,
}

/// A token that is recognized in text before the model sees it.
#[derive(Deserialize)]
pub struct AddedToken {
    #[serde(default)]
    pub id: u32,
    pub content: String,
    #[serde(default)]
    pub single_word: bool,
    #[serde(default)]
    pub lstrip: bool,
    #[serde(default)]
    pub rstrip: bool,
    #[serde(default)]
    pub special: bool,
}

#[derive(Deserialize)]
pub struct ModelJson {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub vocab: Vocab,
    #[serde(default)]
    pub merges: Vec<MergeJson>,
    pub unk_token: Option<String>,
    pub unk_id: Option<u32>,
    #[serde(default)]
    pub byte_fallback: bool,
    #[serde(default)]
    pub fuse_unk: bool,
    #[serde(default)]
    pub ignore_merges: bool,
    pub continuing_subword_prefix: Option<String>,
    pub max_input_chars_per_word: Option<usize>,
    pub end_of_word_suffix: Option<String>,
}

/// The model's tokens: `{text: id}`, or `[[text, score]]` by id.
pub enum Vocab {
    Ids(Vec<(String, u32)>),
    Scores(Vec<(String, f64)>),
}

impl Default for Vocab {
    fn default() -> Vocab {
        Vocab::Ids(Vec::new())
    }
}

/// Older files write the two tokens as one string.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum MergeJson {
    Pair(String, String),
    Joined(String),
}

impl TokenizerJson {
    /// Adds the tokens that the file does not have.
    pub fn add_tokens(&mut self, tokens: Vec<AddedToken>) {
        for token in tokens {
            if self
                .added_tokens
                .iter()
                .all(|known| known.content != token.content)
            {
                self.added_tokens.push(token);
            }
        }
    }
}

/// The pairs of tokens that merge.
pub fn merges(merges: Vec<MergeJson>) -> Result<Vec<(String, String)>> {
    let pairs = merges.into_iter().map(|merge| match merge {
        MergeJson::Pair(left, right) => Ok((left, right)),
        MergeJson::Joined(text) => parse_merge(&text),
    });
    pairs.collect()
}

/// Reads a file of the folder.
pub fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::InvalidModelFile(format!("{name}: {error}")))
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct VocabVisitor;

        impl<'de> Visitor<'de> for VocabVisitor {
            type Value = Vocab;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("tokens by text, or a list of tokens with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Vocab, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Vocab::Ids(entries))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> std::result::Result<Vocab, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push(entry);
                }
                Ok(Vocab::Scores(entries))
            }
        }

        deserializer.deserialize_any(VocabVisitor)
    }
}
