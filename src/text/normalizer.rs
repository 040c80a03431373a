//! What is done to text before it is cut: Unicode normal forms, replacements, character maps. It
//! keeps track of where each byte came from. Knows nothing of tokens.

use std::borrow::Cow;
use std::ops::Range;

use tokenizers::NormalizedString;
use tokenizers::normalizer::Range as Referential;
use tokenizers::utils::SysRegex;

use super::charsmap::Charsmap;
use crate::{Error, Result};

/// Steps, applied one after the other.
#[derive(Debug, Default)]
pub struct Normalizer {
    pub steps: Vec<Step>,
}

/// One thing done to text.
#[derive(Debug)]
pub enum Step {
    /// Unicode normalization.
    Form(Form),
    /// Character by character.
    Lowercase,
    /// Text before every text that is not empty.
    Prepend(Box<str>),
    /// Every match becomes another text.
    Replace { matches: SysRegex, by: Box<str> },
    /// SentencePiece's compiled replacements.
    Charsmap(Charsmap),
}

/// The normal forms of Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// A text and where its bytes come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Normalized<'t> {
    pub text: Cow<'t, str>,
    /// Per byte of `text` and for its end, a byte of the original; `None` if the two are the same
    /// text. Rising.
    origins: Option<Vec<u32>>,
}

impl Normalizer {
    /// The normal form of `text`.
    pub fn normalize<'t>(&self, text: &'t str) -> Normalized<'t> {
        let mut normalized = Normalized {
            text: Cow::Borrowed(text),
            origins: None,
        };
        for step in &self.steps {
            step.apply(&mut normalized);
        }
        normalized
    }
}

impl<'t> Normalized<'t> {
    /// The byte of the original from which the one at `byte` comes, or that follows the last.
    pub fn origin(&self, byte: usize) -> usize {
        match &self.origins {
            None => byte,
            Some(origins) => origins[byte] as usize,
        }
    }

    /// Replaces parts, which are in order and do not overlap.
    fn replace<'r>(&mut self, parts: impl Iterator<Item = (Range<usize>, Cow<'r, str>)>) {
        let mut text = String::with_capacity(self.text.len());
        let mut origins = Vec::with_capacity(self.text.len());
        let mut done = 0;
        let mut changed = false;
        for (part, by) in parts {
            changed = true;
            text.push_str(&self.text[done..part.start]);
            origins.extend((done..part.start).map(|byte| self.origin(byte) as u32));
            text.push_str(&by);
            origins.resize(text.len(), self.origin(part.start) as u32);
            done = part.end;
        }
        if changed {
            text.push_str(&self.text[done..]);
            origins.extend((done..=self.text.len()).map(|byte| self.origin(byte) as u32));
            self.text = Cow::Owned(text);
            self.origins = Some(origins);
        }
    }
}

impl Step {
    /// Replaces the matches of a pattern.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a pattern that the regex library does not take.
    pub fn replace(pattern: &str, by: &str) -> Result<Step> {
        let matches = SysRegex::new(pattern).map_err(|_| {
            let shown: String = pattern.chars().take(80).collect();
            Error::UnsupportedModel(format!("normalizer pattern {shown:?}"))
        })?;
        let by = by.into();
        Ok(Step::Replace { matches, by })
    }

    /// Whether it may make a text shorter by more than putting characters together.
    pub fn drops_text(&self) -> bool {
        matches!(self, Step::Replace { .. } | Step::Charsmap(_))
    }

    fn apply(&self, normalized: &mut Normalized<'_>) {
        let text = normalized.text.clone();
        match self {
            Step::Form(form) => form.apply(normalized),
            Step::Lowercase => normalized.replace(
                text.char_indices()
                    .filter(|&(_, character)| !character.to_lowercase().eq([character]))
                    .map(|(at, character)| {
                        let by: String = character.to_lowercase().collect();
                        (at..at + character.len_utf8(), Cow::Owned(by))
                    }),
            ),
            Step::Prepend(prefix) => {
                let empty = (!text.is_empty()).then_some((0..0, Cow::Borrowed(&**prefix)));
                normalized.replace(empty.into_iter());
            }
            Step::Replace { matches, by } => normalized.replace(
                matches
                    .find_iter(&text)
                    .map(|(start, end)| (start..end, Cow::Borrowed(&**by))),
            ),
            Step::Charsmap(charsmap) => normalized.replace(
                charsmap
                    .replacements(&text)
                    .map(|(part, by)| (part, Cow::Borrowed(by))),
            ),
        }
    }
}

impl Form {
    fn apply(self, normalized: &mut Normalized<'_>) {
        if self == Form::Nfc && normalized.text.chars().all(stays_in_nfc) {
            return;
        }
        let mut string = NormalizedString::from(&*normalized.text);
        match self {
            Form::Nfc => string.nfc(),
            Form::Nfd => string.nfd(),
            Form::Nfkc => string.nfkc(),
            Form::Nfkd => string.nfkd(),
        };
        if string.get() == normalized.text {
            return;
        }
        let mut latest = 0;
        let origins = (0..string.get().len()).map(|byte| {
            let range = string.convert_offsets(Referential::Normalized(byte..byte + 1));
            // Reordered marks may come from further on than what follows them.
            latest = range.map_or(latest, |range| range.start.max(latest));
            normalized.origin(latest) as u32
        });
        let end = normalized.origin(normalized.text.len()) as u32;
        normalized.origins = Some(origins.chain([end]).collect());
        normalized.text = Cow::Owned(string.get().to_owned());
    }
}

/// Characters that form C keeps whatever surrounds them, as long as all around are such: starters
/// that compose with none of them. Not all there are, but those of nearly all text.
fn stays_in_nfc(character: char) -> bool {
    matches!(character,
        '\0'..='\u{2FF}'
        // Cyrillic; what composes with its letters are combining marks.
        | '\u{400}'..='\u{482}' | '\u{48A}'..='\u{52F}'
        // Punctuation, arrows.
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}' | '\u{2190}'..='\u{2199}'
        // CJK punctuation, kana without their marks, ideographs, whole Hangul syllables.
        | '\u{3000}'..='\u{3029}' | '\u{3041}'..='\u{3096}' | '\u{309B}'..='\u{30FF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FF9D}'
        // Emoji.
        | '\u{1F300}'..='\u{1FAFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normalizer(steps: Vec<Step>) -> Normalizer {
        Normalizer { steps }
    }

    fn origins(normalized: &Normalized<'_>) -> Vec<usize> {
        (0..normalized.text.len())
            .map(|byte| normalized.origin(byte))
            .collect()
    }

    #[test]
    fn composed_characters_come_from_their_first_part() {
        let nfc = normalizer(vec![Step::Form(Form::Nfc)]);
        let normalized = nfc.normalize("ae\u{301}b");
        assert_eq!(normalized.text, "aéb");
        assert_eq!(origins(&normalized), [0, 1, 1, 4]);
        let plain = nfc.normalize("aéb 日本");
        assert!(matches!(plain.text, Cow::Borrowed(_)));
        assert_eq!(plain.origin(3), 3);
    }

    #[test]
    fn steps_follow_one_another_and_keep_the_origins() {
        let steps = vec![
            Step::Form(Form::Nfkc),
            Step::Lowercase,
            Step::replace(" {2,}", " ").unwrap(),
            Step::Prepend("_".into()),
        ];
        let normalizer = normalizer(steps);
        let normalized = normalizer.normalize("Ａ   b");
        assert_eq!(normalized.text, "_a b");
        assert_eq!(origins(&normalized), [0, 0, 3, 6]);
        assert_eq!(normalizer.normalize("").text, "");
    }

    proptest! {
        /// The short cut must never keep what the library would change.
        #[test]
        fn the_short_cut_of_form_c_changes_nothing(
            text in "[a-zé\u{400}-\u{52F}\u{3041}-\u{30FF}가-힣\u{1100}-\u{11FF}\u{300}-\u{345}\u{2010}-\u{205E}一-丿\u{FF01}-\u{FF9F}]{0,12}",
        ) {
            let mut expected = NormalizedString::from(text.as_str());
            expected.nfc();
            let found = normalizer(vec![Step::Form(Form::Nfc)]).normalize(&text);
            prop_assert_eq!(&*found.text, expected.get());
            let origins = origins(&found);
            prop_assert!(origins.is_sorted());
            prop_assert!(origins.iter().all(|&origin| text.is_char_boundary(origin)) || found.text == text);
        }
    }
}
