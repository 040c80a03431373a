//! Finds the literal strings of special tokens in a prompt.

/// The special tokens of a vocabulary, sorted by their text.
#[derive(Debug, Default)]
pub struct SpecialTokens {
    /// The tokens, sorted by `text`, which is unique and not empty.
    tokens: Vec<SpecialToken>,
    /// Whether some token's text starts with the byte, for each byte.
    starts: Vec<bool>,
}

/// One token whose literal text is recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecialToken {
    /// The text of the token as a prompt writes it.
    pub text: Box<str>,
    /// Its id.
    pub id: u32,
    /// Whether white space before the token is dropped.
    pub strips_preceding_space: bool,
    /// Whether white space after the token is dropped.
    pub strips_following_space: bool,
    /// Whether the token is not recognized next to a letter or digit.
    pub stands_alone: bool,
}

impl SpecialToken {
    /// A token that does not affect the text around it.
    pub fn new(text: &str, id: u32) -> SpecialToken {
        SpecialToken {
            text: text.into(),
            id,
            strips_preceding_space: false,
            strips_following_space: false,
            stands_alone: false,
        }
    }
}

/// A part of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Segment<'t> {
    /// Ordinary text, never empty.
    Text(&'t str),
    /// A special token.
    Special(u32),
}

impl SpecialTokens {
    /// Collects the tokens. Empty strings are left out; of equal strings the first one is kept.
    pub fn new(mut tokens: Vec<SpecialToken>) -> SpecialTokens {
        tokens.retain(|token| !token.text.is_empty());
        tokens.sort_by(|a, b| a.text.as_bytes().cmp(b.text.as_bytes()));
        tokens.dedup_by(|later, first| later.text == first.text);
        let mut starts = vec![false; 256];
        for token in &tokens {
            starts[usize::from(token.text.as_bytes()[0])] = true;
        }
        SpecialTokens { tokens, starts }
    }

    /// The token with exactly this text.
    pub fn get(&self, text: &str) -> Option<&SpecialToken> {
        let index = self
            .tokens
            .binary_search_by(|token| token.text.as_bytes().cmp(text.as_bytes()));
        Some(&self.tokens[index.ok()?])
    }

    /// Whether white space next to some token is dropped.
    pub fn drops_text(&self) -> bool {
        let mut tokens = self.tokens.iter();
        tokens.any(|token| token.strips_preceding_space || token.strips_following_space)
    }

    /// [`Self::split_marked`] for a text without markers.
    #[cfg(test)]
    pub fn split<'t, E>(
        &self,
        text: &'t str,
        visit: impl FnMut(usize, Segment<'t>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.split_marked(text, None, visit)
    }

    /// Calls `visit` with the segments of `text` in order and the byte at which each begins: leftmost special token
    /// first, the longest where several start. A `marker` after the first character of a token's text keeps it from
    /// being recognized. Segments of text contain their markers.
    pub fn split_marked<'t, E>(
        &self,
        text: &'t str,
        marker: Option<char>,
        mut visit: impl FnMut(usize, Segment<'t>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = text.as_bytes();
        let mut done = 0;
        let mut at = 0;
        while at < bytes.len() {
            let found = if self.starts[usize::from(bytes[at])] {
                self.longest_prefix_of(&bytes[at..])
            } else {
                None
            };
            let Some(token) = found else {
                at += 1;
                continue;
            };
            let end = at + token.text.len();
            let is_apart = !token.stands_alone
                || !(text[..at].ends_with(is_word) || text[end..].starts_with(is_word));
            // Longer strings have the marker within them.
            let is_marked = token.text.chars().nth(1).is_none()
                && marker.is_some_and(|marker| text[end..].starts_with(marker));
            if !is_apart || is_marked {
                at = end;
                continue;
            }
            let mut before = &text[done..at];
            if token.strips_preceding_space {
                before = before.trim_end();
            }
            if !before.is_empty() {
                visit(done, Segment::Text(before))?;
            }
            visit(at, Segment::Special(token.id))?;
            at = end;
            if token.strips_following_space {
                at = text.len() - text[end..].trim_start().len();
            }
            done = at;
        }
        if done < bytes.len() {
            visit(done, Segment::Text(&text[done..]))?;
        }
        Ok(())
    }

    /// Whether `bytes`, the end of a text, is the beginning of a token's text, which other text may complete.
    pub fn may_begin_with(&self, bytes: &[u8]) -> bool {
        let first = self
            .tokens
            .partition_point(|token| token.text.as_bytes() < bytes);
        let token = self.tokens.get(first);
        token.is_some_and(|token| token.text.as_bytes().starts_with(bytes))
    }

    /// The text of the longest token that `bytes` starts with.
    pub fn text_at(&self, bytes: &[u8]) -> Option<&str> {
        let is_start = self.starts[usize::from(*bytes.first()?)];
        let token = is_start.then(|| self.longest_prefix_of(bytes))?;
        token.map(|token| &*token.text)
    }

    /// Whether some text starts with `byte`.
    pub fn starts_with(&self, byte: u8) -> bool {
        self.starts[usize::from(byte)]
    }

    /// The longest token text that `bytes` starts with: narrows the sorted range of strings that
    /// share the first `length` bytes, byte by byte.
    fn longest_prefix_of(&self, bytes: &[u8]) -> Option<&SpecialToken> {
        let mut candidates = &self.tokens[..];
        let mut best = None;
        for (length, &byte) in bytes.iter().enumerate() {
            // Sorted, so a text of exactly `length` bytes is the first of those sharing them.
            if let Some((first, rest)) = candidates.split_first()
                && first.text.len() == length
            {
                best = Some(first);
                candidates = rest;
            }
            let byte_at = |token: &SpecialToken| token.text.as_bytes()[length];
            let low = candidates.partition_point(|token| byte_at(token) < byte);
            let high = candidates.partition_point(|token| byte_at(token) <= byte);
            candidates = &candidates[low..high];
            if candidates.is_empty() {
                return best;
            }
        }
        candidates
            .first()
            .filter(|token| token.text.len() == bytes.len())
            .or(best)
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(strings: &[&str]) -> SpecialTokens {
        SpecialTokens::new(
            strings
                .iter()
                .enumerate()
                .map(|(id, &text)| SpecialToken {
                    strips_preceding_space: text.starts_with('~'),
                    strips_following_space: text.ends_with('~'),
                    stands_alone: text.starts_with('@'),
                    ..SpecialToken::new(text, id as u32)
                })
                .collect(),
        )
    }

    fn split<'t>(special: &SpecialTokens, text: &'t str) -> Vec<Segment<'t>> {
        let mut segments = Vec::new();
        special
            .split(text, |start, segment| {
                if let Segment::Text(part) = segment {
                    assert!(text[start..].starts_with(part));
                }
                segments.push(segment);
                Ok::<(), ()>(())
            })
            .unwrap();
        segments
    }

    #[test]
    fn finds_the_leftmost_longest() {
        let special = tokens(&["<s>", "<s><s>!", "", "é~", "<"]);
        assert_eq!(
            split(&special, "a<s><s>b<s><s>!é~ \n c<"),
            [
                Segment::Text("a"),
                Segment::Special(0),
                Segment::Special(0),
                Segment::Text("b"),
                Segment::Special(1),
                Segment::Special(3),
                Segment::Text("c"),
                Segment::Special(4),
            ]
        );
        assert_eq!(split(&special, ""), []);
        assert_eq!(special.get("<s>").unwrap().id, 0);
        assert_eq!(special.get("<s"), None);
    }

    #[test]
    fn white_space_and_words_around_a_token_count_where_it_says_so() {
        let special = tokens(&["~x", "@"]);
        assert_eq!(
            split(&special, " \u{3000}~x a \n~x ~x"),
            [
                Segment::Special(0),
                Segment::Text(" a"),
                Segment::Special(0),
                Segment::Special(0)
            ]
        );
        assert_eq!(
            split(&special, "a@ @ @b"),
            [
                Segment::Text("a@ "),
                Segment::Special(1),
                Segment::Text(" @b")
            ]
        );
    }

    proptest! {
        #[test]
        fn equals_trying_every_token_at_every_place(
            strings in prop::collection::vec("[ab]{1,4}", 0..6),
            text in "[abc]{0,24}",
        ) {
            let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
            let special = tokens(&strings);
            let mut expected = Vec::new();
            let (mut done, mut at) = (0, 0);
            while at < text.len() {
                let best = (0..strings.len())
                    .filter(|&i| text[at..].starts_with(strings[i]))
                    .max_by_key(|&i| (strings[i].len(), std::cmp::Reverse(i)));
                if let Some(i) = best {
                    if done < at {
                        expected.push(Segment::Text(&text[done..at]));
                    }
                    expected.push(Segment::Special(i as u32));
                    at += strings[i].len();
                    done = at;
                } else {
                    at += 1;
                }
            }
            if done < at {
                expected.push(Segment::Text(&text[done..]));
            }
            prop_assert_eq!(split(&special, &text), expected);
        }
    }
}
