//! Token ids to text as they arrive (specification 6.5). Knows nothing of stop strings.

use std::rc::Rc;

use super::tokenizer::Tokenizer;
use super::utf8::Utf8Stream;

/// Turns a running choice's ids into text: whole characters only.
///
/// The joined bytes of the tokens are decoded with the WHATWG rule; what is not yet a whole
/// character waits. All pushes and [`finish`](Self::finish) joined are the lossy decoding of the
/// joined bytes.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    tokenizer: Rc<Tokenizer>,
    decoder: TokenDecoder,
    /// Code points of the text that was returned.
    returned_chars: usize,
}

impl Detokenizer {
    /// A detokenizer for what follows `prompt`. With a prompt a leading space stays; without one
    /// the text begins here, and a space that the tokenizer's prefix rule put there is dropped.
    /// `skip_special` hides special tokens, else they give their literal text.
    pub fn new(tokenizer: Rc<Tokenizer>, prompt: &[u32], skip_special: bool) -> Detokenizer {
        let at_start = prompt.is_empty();
        let decoder = TokenDecoder::new(&tokenizer, at_start, skip_special);
        Detokenizer {
            tokenizer,
            decoder,
            returned_chars: 0,
        }
    }

    /// Where the text of `id` begins if it comes next, in code points; inside of a character, where
    /// that character begins. A token without text begins where its text would have been.
    pub fn start_of(&self, id: u32) -> usize {
        let stream = &self.decoder.stream;
        let is_cut_off = match self.decoder.visible_bytes(&self.tokenizer, id).first() {
            Some(&byte) => stream.pending_bytes() > 0 && !stream.continues(byte),
            None => false,
        };
        // What waits and cannot become a character any more is one U+FFFD.
        self.returned_chars + usize::from(is_cut_off)
    }

    /// Where the text so far ends, in code points; a character that waits for its rest counts.
    pub fn end(&self) -> usize {
        self.returned_chars + usize::from(self.pending_bytes() > 0)
    }

    /// Whether the next visible token loses a leading space.
    pub fn drops_space(&self) -> bool {
        self.decoder.drop_space
    }

    /// Takes the next id and returns the text it settles, often none.
    pub fn push(&mut self, id: u32) -> String {
        let mut out = String::new();
        self.decoder.push(&self.tokenizer, id, &mut out);
        self.returned_chars += out.chars().count();
        out
    }

    /// Ends the text: an unfinished character becomes one U+FFFD.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.decoder.finish(&mut out);
        self.returned_chars += out.chars().count();
        out
    }

    /// Bytes that wait for the rest of their character.
    pub fn pending_bytes(&self) -> usize {
        self.decoder.stream.pending_bytes()
    }
}

/// The state of a [`Detokenizer`], apart from the tokenizer.
#[derive(Debug, Clone)]
pub(super) struct TokenDecoder {
    stream: Utf8Stream,
    skip_special: bool,
    /// Drop one space before the first visible byte.
    drop_space: bool,
}

impl TokenDecoder {
    pub(super) fn new(tokenizer: &Tokenizer, at_start: bool, skip_special: bool) -> TokenDecoder {
        TokenDecoder {
            stream: Utf8Stream::default(),
            skip_special,
            drop_space: at_start && tokenizer.drops_first_space(),
        }
    }

    pub(super) fn push(&mut self, tokenizer: &Tokenizer, id: u32, out: &mut String) {
        if self.skip_special && tokenizer.is_special(id) {
            return;
        }
        self.stream.push(self.visible_bytes(tokenizer, id), out);
        self.drop_space &= tokenizer.token_bytes(id).is_empty();
    }

    /// What the token adds to the text if it comes next.
    fn visible_bytes<'t>(&self, tokenizer: &'t Tokenizer, id: u32) -> &'t [u8] {
        if self.skip_special && tokenizer.is_special(id) {
            return &[];
        }
        let bytes = tokenizer.token_bytes(id);
        match self.drop_space {
            true => bytes.strip_prefix(b" ").unwrap_or(bytes),
            false => bytes,
        }
    }

    pub(super) fn finish(&mut self, out: &mut String) {
        self.stream.finish(out);
    }
}
