//! The decoding of token ids to text, one id after the other. It has no tokenizer of its own, so that
//! both the tokenizer and the detokenizer can use it.

use super::utf8::Utf8Stream;
use super::vocabulary::Vocabulary;

/// The state of a text that is being decoded.
#[derive(Debug, Clone)]
pub struct TokenDecoder {
    stream: Utf8Stream,
    skip_special: bool,
    /// Drop one space before the first visible byte.
    drops_space: bool,
}

impl TokenDecoder {
    /// A decoder at the beginning of a text. `drops_space` drops the first space; `skip_special` hides
    /// special tokens.
    pub fn new(drops_space: bool, skip_special: bool) -> TokenDecoder {
        TokenDecoder {
            stream: Utf8Stream::default(),
            skip_special,
            drops_space,
        }
    }

    /// Takes the next id and appends the text that it completes to `out`.
    pub fn push(&mut self, vocabulary: &Vocabulary, id: u32, out: &mut String) {
        if self.skip_special && vocabulary.is_special(id) {
            return;
        }
        self.stream.push(self.visible_bytes(vocabulary, id), out);
        self.drops_space &= vocabulary.bytes(id).is_empty();
    }

    /// Ends the text: an unfinished character becomes one U+FFFD.
    pub fn finish(&mut self, out: &mut String) {
        self.stream.finish(out);
    }

    /// Whether the next visible token loses a leading space.
    pub fn drops_space(&self) -> bool {
        self.drops_space
    }

    /// Bytes of an unfinished character that are held back.
    pub fn pending_bytes(&self) -> usize {
        self.stream.pending_bytes()
    }

    /// Whether the token `id`, coming next, shows that the held-back bytes never become a character.
    pub fn is_cut_off_by(&self, vocabulary: &Vocabulary, id: u32) -> bool {
        match self.visible_bytes(vocabulary, id).first() {
            Some(&byte) => self.stream.pending_bytes() > 0 && !self.stream.continues(byte),
            None => false,
        }
    }

    /// The bytes that the token adds to the text if it comes next.
    fn visible_bytes<'v>(&self, vocabulary: &'v Vocabulary, id: u32) -> &'v [u8] {
        if self.skip_special && vocabulary.is_special(id) {
            return &[];
        }
        let bytes = vocabulary.bytes(id);
        match self.drops_space {
            true => bytes.strip_prefix(b" ").unwrap_or(bytes),
            false => bytes,
        }
    }
}
