//! WordPiece (Devlin et al. 2018, <https://arxiv.org/abs/1810.04805>): a word becomes its longest token, then the
//! longest token of the rest, and so on. Normalization and the division into words come before.

use super::normalizer::{NormalForm, NormalizerStep};
use super::splitter::{Behavior, Splitter};
use super::text_index::TextIndex;
use crate::{Error, Result};

/// The sign of a token that begins a word, as in GGUF files.
pub const WORD_START: char = '▁';

/// Characters that stand alone: CJK ideographs, as BERT defines them.
const IDEOGRAPHS: &str = r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]";

/// A WordPiece encoder.
#[derive(Debug)]
pub struct WordPiece {
    strings: TextIndex,
    /// Bytes of the longest token.
    longest_bytes: usize,
    max_word_chars: usize,
    unknown_id: u32,
}

impl WordPiece {
    /// Builds the encoder from the tokens' strings: those that begin a word start with [`WORD_START`]. A word of more
    /// than `max_word_chars` characters is unknown.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if there is no unknown token.
    pub fn new(
        strings: &[String],
        max_word_chars: usize,
        unknown_id: Option<u32>,
    ) -> Result<WordPiece> {
        let missing = || Error::InvalidModelFile("there is no unknown token".to_owned());
        Ok(WordPiece {
            strings: TextIndex::new(strings),
            longest_bytes: strings.iter().map(String::len).max().unwrap_or(0),
            max_word_chars,
            unknown_id: unknown_id.ok_or_else(missing)?,
        })
    }

    /// Appends the ids of a word. One that cannot be covered is one unknown token.
    pub fn encode(&self, word: &str, ids: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let first = ids.len();
        let word = format!("{WORD_START}{word}");
        let mut rest = &word[..];
        if word.chars().count() - 1 > self.max_word_chars {
            rest = &rest[..0];
            ids.push(self.unknown_id);
        }
        while !rest.is_empty() {
            // Cut within a character, a text is not valid, so only whole characters are looked up.
            let ends = (1..=rest.len().min(self.longest_bytes)).rev();
            let mut ends = ends.filter(|end| rest.is_char_boundary(*end));
            let found = ends.find_map(|end| {
                let id = self.strings.get(&rest.as_bytes()[..end])?;
                // The sign alone is no beginning of a word.
                (rest.len() < word.len() || end > WORD_START.len_utf8()).then_some((id, end))
            });
            match found {
                Some((id, end)) => {
                    ids.push(id);
                    rest = &rest[end..];
                }
                None => {
                    ids.truncate(first);
                    ids.push(self.unknown_id);
                    return;
                }
            }
        }
    }
}

/// The steps of BERT's normalizer.
///
/// # Errors
/// [`Error::UnsupportedModel`] for a pattern that the regex library does not accept.
pub fn normalizer(
    cleans: bool,
    strips_accents: bool,
    is_lowercase: bool,
) -> Result<Vec<NormalizerStep>> {
    let mut steps = Vec::new();
    if cleans {
        steps.push(NormalizerStep::replace(
            r"[\x{0}\x{FFFD}[[\p{Cc}\p{Cf}\p{Co}]&&[^\t\n\r]]]",
            "",
        )?);
        steps.push(NormalizerStep::replace(r"\s", " ")?);
    }
    if strips_accents {
        steps.push(NormalizerStep::Form(NormalForm::Nfd));
        steps.push(NormalizerStep::replace(r"\p{Mn}", "")?);
    }
    if is_lowercase {
        steps.push(NormalizerStep::Lowercase);
    }
    Ok(steps)
}

/// Adds BERT's division into words to a splitter.
///
/// # Errors
/// Same as [`normalizer`].
pub fn split_words(splitter: &mut Splitter) -> Result<()> {
    splitter.cut(r"\s", Behavior::Removed, false)?;
    splitter.cut(r"[\p{P}!-/:-@\[-`{-~]", Behavior::Isolated, false)
}

/// Adds the division at ideographs.
///
/// # Errors
/// Same as [`normalizer`].
pub fn split_ideographs(splitter: &mut Splitter) -> Result<()> {
    splitter.cut(IDEOGRAPHS, Behavior::Isolated, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(word: &str) -> Vec<u32> {
        let strings = ["[UNK]", "▁un", "aff", "able", "▁a", "ab", "▁東", "é", "▁"];
        let strings = strings.map(str::to_owned);
        let mut ids = vec![7];
        let encoder = WordPiece::new(&strings, 10, Some(0)).unwrap();
        encoder.encode(word, &mut ids);
        assert_eq!(ids.remove(0), 7);
        ids
    }

    #[test]
    fn the_longest_token_comes_first() {
        assert_eq!(encode("unaffable"), [1, 2, 3]);
        assert_eq!(encode("aab"), [4, 5]);
        assert_eq!(encode("東"), [6]);
        assert_eq!(encode("aé"), [4, 7]);
        assert_eq!(encode(""), [0u32; 0]);
    }

    #[test]
    fn a_word_is_covered_or_unknown() {
        // The first pieces are known, and `able` begins no word.
        for word in ["unaffx", "able", "b", "é", "a東", "unaffableab"] {
            assert_eq!(encode(word), [0], "{word}");
        }
        assert_eq!(encode("unaffaffab"), [1, 2, 2, 5], "ten characters");
    }

    #[test]
    fn the_unknown_token_is_needed() {
        assert!(WordPiece::new(&["▁a".to_owned()], 10, None).is_err());
    }
}
