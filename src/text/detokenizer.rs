//! Token ids to text as they arrive (specification 6.5).

use std::rc::Rc;

use super::token_decoder::TokenDecoder;
use super::tokenizer::Tokenizer;

/// Turns the ids of a running choice into text, whole characters only.
///
/// The joined bytes of the tokens are decoded by the WHATWG rule; an unfinished character is held
/// back. The results of all pushes and of [`finish`](Self::finish), joined, are the lossy decoding of
/// the joined bytes.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    tokenizer: Rc<Tokenizer>,
    decoder: TokenDecoder,
    /// Code points of the text that was returned.
    returned_chars: usize,
}

impl Detokenizer {
    /// A detokenizer for the text after `prompt`. After a prompt a leading space is kept. Without a
    /// prompt the text begins here, and the space that the tokenizer's prefix rule added is dropped.
    /// `skip_special` hides special tokens; otherwise they give their literal text.
    pub fn new(tokenizer: Rc<Tokenizer>, prompt: &[u32], skip_special: bool) -> Detokenizer {
        let drops_space = prompt.is_empty() && tokenizer.drops_first_space();
        let decoder = TokenDecoder::new(drops_space, skip_special);
        Detokenizer {
            tokenizer,
            decoder,
            returned_chars: 0,
        }
    }

    /// The place where the text of `id` begins if it comes next, in code points. A token that begins inside a
    /// character begins where that character begins. A token without text begins where its text
    /// would be.
    pub fn start_of(&self, id: u32) -> usize {
        // A held-back prefix that `id` does not continue becomes one U+FFFD.
        let cut_off = self.decoder.is_cut_off_by(self.tokenizer.vocabulary(), id);
        self.returned_chars + usize::from(cut_off)
    }

    /// The end of the text so far, in code points; a held-back character counts.
    pub fn end(&self) -> usize {
        self.returned_chars + usize::from(self.pending_bytes() > 0)
    }

    /// Whether the next visible token loses a leading space.
    pub fn drops_space(&self) -> bool {
        self.decoder.drops_space()
    }

    /// Takes the next id and returns the text that it completes, often none.
    pub fn push(&mut self, id: u32) -> String {
        let mut out = String::new();
        self.decoder.push(self.tokenizer.vocabulary(), id, &mut out);
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

    /// Bytes of an unfinished character that are held back.
    pub fn pending_bytes(&self) -> usize {
        self.decoder.pending_bytes()
    }
}
