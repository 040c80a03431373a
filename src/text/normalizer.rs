//! The normalization of text before it is split: Unicode normal forms, replacements, character maps.
//! It tracks where each byte comes from.

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
    pub steps: Vec<NormalizerStep>,
}

/// One step of a normalizer.
#[derive(Debug)]
pub enum NormalizerStep {
    /// Unicode normalization.
    Form(NormalForm),
    /// Character by character.
    Lowercase,
    /// Adds text before every non-empty text.
    Prepend(Box<str>),
    /// Replaces every match.
    Replace { matches: SysRegex, by: Box<str> },
    /// SentencePiece's compiled replacements.
    Charsmap(Charsmap),
}

/// The Unicode normalization forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormalForm {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

/// A normalized text and the origins of its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Normalized<'t> {
    pub text: Cow<'t, str>,
    /// The byte of the original that each byte of `text`, and its end, comes from, in ascending
    /// order; `None` if the text is the original.
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
    /// The same, with a string of its own.
    pub fn into_owned(self) -> Normalized<'static> {
        Normalized {
            text: Cow::Owned(self.text.into_owned()),
            origins: self.origins,
        }
    }

    /// The byte of the original that the byte at `byte` comes from; for the end, the original's end.
    pub fn origin(&self, byte: usize) -> usize {
        match &self.origins {
            None => byte,
            Some(origins) => origins[byte] as usize,
        }
    }

    /// Replaces parts, which must be in order and must not overlap.
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

impl NormalizerStep {
    /// Replaces the matches of a pattern.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for a pattern that the regex library does not accept.
    pub fn replace(pattern: &str, by: &str) -> Result<NormalizerStep> {
        let matches = SysRegex::new(pattern).map_err(|_| {
            let shown: String = pattern.chars().take(80).collect();
            Error::UnsupportedModel(format!("normalizer pattern {shown:?}"))
        })?;
        let by = by.into();
        Ok(NormalizerStep::Replace { matches, by })
    }

    /// Whether it can make a text shorter other than by composing characters.
    pub fn drops_text(&self) -> bool {
        matches!(
            self,
            NormalizerStep::Replace { .. } | NormalizerStep::Charsmap(_)
        )
    }

    fn apply(&self, normalized: &mut Normalized<'_>) {
        let text = normalized.text.clone();
        match self {
            NormalizerStep::Form(form) => form.apply(normalized),
            NormalizerStep::Lowercase => normalized.replace(
                text.char_indices()
                    .filter(|&(_, character)| !character.to_lowercase().eq([character]))
                    .map(|(at, character)| {
                        let by: String = character.to_lowercase().collect();
                        (at..at + character.len_utf8(), Cow::Owned(by))
                    }),
            ),
            NormalizerStep::Prepend(prefix) => {
                let empty = (!text.is_empty()).then_some((0..0, Cow::Borrowed(&**prefix)));
                normalized.replace(empty.into_iter());
            }
            NormalizerStep::Replace { matches, by } => normalized.replace(
                matches
                    .find_iter(&text)
                    .map(|(start, end)| (start..end, Cow::Borrowed(&**by))),
            ),
            NormalizerStep::Charsmap(charsmap) => normalized.replace(
                charsmap
                    .replacements(&text)
                    .map(|(part, by)| (part, Cow::Borrowed(by))),
            ),
        }
    }
}

impl NormalForm {
    fn apply(self, normalized: &mut Normalized<'_>) {
        if self == NormalForm::Nfc && normalized.text.chars().all(stays_in_nfc) {
            return;
        }
        let mut string = NormalizedString::from(&*normalized.text);
        match self {
            NormalForm::Nfc => string.nfc(),
            NormalForm::Nfd => string.nfd(),
            NormalForm::Nfkc => string.nfkc(),
            NormalForm::Nfkd => string.nfkd(),
        };
        if string.get() == normalized.text {
            return;
        }
        let mut latest = 0;
        let origins = (0..string.get().len()).map(|byte| {
            let range = string.convert_offsets(Referential::Normalized(byte..byte + 1));
            // Reordered marks may come from later bytes than what follows them.
            latest = range.map_or(latest, |range| range.start.max(latest));
            normalized.origin(latest) as u32
        });
        let end = normalized.origin(normalized.text.len()) as u32;
        normalized.origins = Some(origins.chain([end]).collect());
        normalized.text = Cow::Owned(string.get().to_owned());
    }
}

/// Whether form C keeps a text of only such characters: starters that do not compose with each other.
/// The list is not complete but covers nearly all text.
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

    fn normalizer(steps: Vec<NormalizerStep>) -> Normalizer {
        Normalizer { steps }
    }

    fn origins(normalized: &Normalized<'_>) -> Vec<usize> {
        (0..normalized.text.len())
            .map(|byte| normalized.origin(byte))
            .collect()
    }

    #[test]
    fn composed_characters_come_from_their_first_part() {
        let nfc = normalizer(vec![NormalizerStep::Form(NormalForm::Nfc)]);
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
            NormalizerStep::Form(NormalForm::Nfkc),
            NormalizerStep::Lowercase,
            NormalizerStep::replace(" {2,}", " ").unwrap(),
            NormalizerStep::Prepend("_".into()),
        ];
        let normalizer = normalizer(steps);
        let normalized = normalizer.normalize("Ａ   b");
        assert_eq!(normalized.text, "_a b");
        assert_eq!(origins(&normalized), [0, 0, 3, 6]);
        assert_eq!(normalizer.normalize("").text, "");
    }

    proptest! {
        /// The shortcut never keeps what the library would change.
        #[test]
        fn the_shortcut_of_form_c_changes_nothing(
            text in "[a-zé\u{400}-\u{52F}\u{3041}-\u{30FF}가-힣\u{1100}-\u{11FF}\u{300}-\u{345}\u{2010}-\u{205E}一-丿\u{FF01}-\u{FF9F}]{0,12}",
        ) {
            let mut expected = NormalizedString::from(text.as_str());
            expected.nfc();
            let found = normalizer(vec![NormalizerStep::Form(NormalForm::Nfc)]).normalize(&text);
            prop_assert_eq!(&*found.text, expected.get());
            let origins = origins(&found);
            prop_assert!(origins.is_sorted());
            prop_assert!(origins.iter().all(|&origin| text.is_char_boundary(origin)) || found.text == text);
        }
    }
}
