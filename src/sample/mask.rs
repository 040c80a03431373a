//! Which tokens a constraint allows (stage 5). Knows no constraint.

/// A set of token ids: 32 per word, id `i` is bit `i % 32` of word `i / 32`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
}

impl TokenMask {
    /// The set whose words are `words`; ids beyond them are not in it.
    pub fn from_words(words: Vec<u32>) -> TokenMask {
        TokenMask { words }
    }

    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether `id` is allowed.
    pub fn allows(&self, id: u32) -> bool {
        let word = self.words.get(id as usize / 32).copied().unwrap_or(0);
        word >> (id % 32) & 1 == 1
    }
}
