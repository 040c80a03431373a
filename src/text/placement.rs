//! The places where the tokens of a text begin, in characters. It follows the tokens' bytes through the text and
//! does not depend on how the text was split.

use std::ops::Range;

use super::normalizer::Normalized;
use super::vocabulary::Vocabulary;

/// The place of a token in the text that it was made from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Code points before the token; for a token inside a character, before that character.
    pub start: usize,
    /// The token's first space is not in the text: the tokenizer's prefix rule added it.
    pub drops_space: bool,
}

/// A part of the text that was tokenized on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSegment<'t> {
    /// The range of ids that it became.
    pub tokens: Range<usize>,
    /// Its beginning in the text.
    pub start_byte: usize,
    /// Its text after normalization, which its tokens spell.
    pub normalized: Normalized<'t>,
    /// Its first token begins with a space that is not in the text.
    pub drops_space: bool,
}

/// The places of `ids`, which were encoded from the segments of `text`. Ids outside all segments (added
/// automatically) have no width.
pub fn place(
    vocabulary: &Vocabulary,
    text: &str,
    ids: &[u32],
    segments: &[PlacedSegment<'_>],
) -> Vec<Place> {
    let mut cursor = Cursor::default();
    let mut places = Vec::with_capacity(ids.len());
    for segment in segments {
        places.resize(segment.tokens.start, cursor.place(text));
        let spelled = &*segment.normalized.text;
        let mut at = 0;
        let mut after_unknown = false;
        for index in segment.tokens.clone() {
            let bytes = vocabulary.bytes(ids[index]);
            let is_unknown = vocabulary.is_special(ids[index]);
            let drops_space = segment.drops_space && index == segment.tokens.start;
            let bytes = match drops_space {
                true => bytes.strip_prefix(b" ").unwrap_or(bytes),
                false => bytes,
            };
            if !is_unknown {
                at += skipped_bytes(spelled, at, bytes, after_unknown);
            }
            after_unknown = is_unknown;
            let origin = segment.normalized.origin(at);
            cursor.move_to(text, segment.start_byte + origin);
            places.push(Place {
                drops_space,
                ..cursor.place(text)
            });
            let rest = &spelled.as_bytes()[at..];
            at += match spelled_bytes(rest, bytes) {
                Some(width) => width,
                // The unknown token stands for a byte.
                None if is_unknown => usize::from(!rest.is_empty()),
                None => spelled.get(at..).map_or(0, first_char_bytes),
            };
        }
        let end = segment.normalized.origin(at);
        cursor.move_to(text, segment.start_byte + end);
    }
    cursor.move_to(text, text.len());
    places.resize(ids.len(), cursor.place(text));
    places
}

/// The number of bytes after `at` at which the token begins: 0, or past white space that is in no piece, or past
/// characters that became one unknown token.
fn skipped_bytes(spelled: &str, at: usize, token: &[u8], after_unknown: bool) -> usize {
    const REACH_BYTES: usize = 256;
    let rest = &spelled.as_bytes()[at..];
    let reach = match after_unknown {
        true => rest.len(),
        false => rest.len() - rest.trim_ascii_start().len(),
    };
    (0..=reach.min(REACH_BYTES))
        .filter(|skipped| spelled.is_char_boundary(at + skipped))
        .find(|&skipped| spelled_bytes(&rest[skipped..], token).is_some())
        .unwrap_or(0)
}

/// The number of bytes of `rest` that the token spells; `None` if `rest` begins with something else.
/// SentencePiece reads ▁ as a space.
fn spelled_bytes(rest: &[u8], token: &[u8]) -> Option<usize> {
    token.iter().try_fold(0, |at, &byte| {
        if rest.get(at) == Some(&byte) {
            return Some(at + 1);
        }
        let sign = "▁".as_bytes();
        (byte == b' ' && rest[at..].starts_with(sign)).then_some(at + sign.len())
    })
}

fn first_char_bytes(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

#[derive(Default)]
struct Cursor {
    byte: usize,
    /// Characters that begin before `byte`.
    chars: usize,
}

impl Cursor {
    /// Moves forward.
    fn move_to(&mut self, text: &str, byte: usize) {
        let begins_char = |index: &usize| text.is_char_boundary(*index);
        self.chars += (self.byte..byte).filter(begins_char).count();
        self.byte = byte;
    }

    fn place(&self, text: &str) -> Place {
        let is_inside = !text.is_char_boundary(self.byte);
        Place {
            start: self.chars - usize::from(is_inside),
            drops_space: false,
        }
    }
}
