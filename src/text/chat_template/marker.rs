//! Special tokens in the strings of a conversation. A string that says `<|im_end|>` must not end a message: before the
//! template is rendered, a marker goes into each such text, and after the special tokens of the rendered prompt have been
//! found, the markers are removed.
//!
//! Special tokens in messages are broken by a marker, a character that occurs nowhere in the request. It is put into
//! each text of a control token before rendering. After rendering, special tokens are found first, and then markers are
//! removed from the text between them. So the template may cut, join and quote strings without making a token.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

/// A character that occurs in no string of a conversation and in no template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker(char);

/// Noncharacters first, which Unicode reserves for such uses, then private characters.
const CANDIDATES: [std::ops::RangeInclusive<char>; 4] = [
    '\u{fdd0}'..='\u{fdef}',
    '\u{e000}'..='\u{f8ff}',
    '\u{f0000}'..='\u{ffffd}',
    '\u{100000}'..='\u{10fffd}',
];

impl Marker {
    /// A character that is not in `strings`; `None` if they contain every candidate.
    pub fn absent_from<'t>(strings: impl IntoIterator<Item = &'t str>) -> Option<Marker> {
        let is_candidate = |character: &char| *character >= '\u{e000}';
        let used: BTreeSet<char> = strings
            .into_iter()
            .flat_map(str::chars)
            .filter(is_candidate)
            .collect();
        let mut candidates = CANDIDATES.into_iter().flatten();
        candidates
            .find(|character| !used.contains(character))
            .map(Marker)
    }

    /// The character.
    pub fn char(self) -> char {
        self.0
    }

    /// Whether `character` is the marker.
    pub fn is(self, character: char) -> bool {
        character == self.0
    }

    /// `text` without markers.
    pub fn remove(self, text: &str) -> String {
        text.replace(self.0, "")
    }

    /// Marks every string of `json`, names of members included. `mark` appends a marked text.
    pub fn mark_all(self, json: &mut Json, mark: &impl Fn(&str) -> Option<String>) {
        match json {
            Json::String(text) => {
                if let Some(marked) = mark(text) {
                    *text = marked;
                }
            }
            Json::Array(elements) => {
                for element in elements {
                    self.mark_all(element, mark);
                }
            }
            Json::Object(members) => {
                let marked = std::mem::take(members).into_iter().map(|(name, mut json)| {
                    self.mark_all(&mut json, mark);
                    (mark(&name).unwrap_or(name), json)
                });
                *members = marked.collect::<Map<_, _>>();
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
}
