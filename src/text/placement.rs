//! Where the tokens of a text lie in it, character by character. Knows nothing of how the text was
//! cut; it follows the tokens' bytes through the text.

use std::ops::Range;

use super::tokenizer::Tokenizer;

/// Where a token lies in the text it was made from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Code points before the token; of a token inside a character, before that character.
    pub start: usize,
    /// The token's first space is not in the text: the tokenizer's prefix rule put it there.
    pub drops_space: bool,
}

/// A part of the text that was tokenised on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedSegment {
    /// Which of the ids came of it.
    pub tokens: Range<usize>,
    /// Where it begins in the text.
    pub start_byte: usize,
    /// Its first token begins with a space that is not in the text.
    pub drops_space: bool,
}

/// The places of `ids`, which the segments of `text` became. Ids of no segment (automatic ones)
/// have no width.
pub fn place(
    tokenizer: &Tokenizer,
    text: &str,
    ids: &[u32],
    segments: &[PlacedSegment],
) -> Vec<Place> {
    let mut cursor = Cursor::default();
    let mut places = Vec::with_capacity(ids.len());
    for segment in segments {
        places.resize(segment.tokens.start, cursor.place(text));
        cursor.move_to(text, segment.start_byte);
        for index in segment.tokens.clone() {
            let mut bytes = tokenizer.token_bytes(ids[index]);
            let mut place = cursor.place(text);
            if segment.drops_space && index == segment.tokens.start {
                place.drops_space = true;
                bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
            }
            places.push(place);
            let rest = &text.as_bytes()[cursor.byte..];
            let width = match rest.starts_with(bytes) {
                true => bytes.len(),
                // The unknown token stands for a byte.
                false if tokenizer.is_special(ids[index]) => usize::from(!rest.is_empty()),
                // SentencePiece reads ▁ as a space.
                false => text.get(cursor.byte..).map_or(0, first_char_bytes),
            };
            cursor.move_to(text, cursor.byte + width);
        }
    }
    cursor.move_to(text, text.len());
    places.resize(ids.len(), cursor.place(text));
    places
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
