//! SentencePiece unigram: the segmentation of a text into tokens with the greatest sum of scores.
//! Special tokens, normalization and the space prefix are handled before.

use super::byte_fallback::ByteFallback;
use super::token::TokenKind;
use crate::{Error, Result};

/// A unigram encoder.
#[derive(Debug)]
pub struct Unigram {
    /// The strings of the tokens that text can become, sorted by their bytes and concatenated; the `i`th
    /// is `ends[i - 1]..ends[i]`.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// The id of the `i`th text.
    ids: Vec<u32>,
    /// The scores by id.
    scores: Vec<f64>,
    unknown_id: u32,
    unknown_score: f64,
    byte_fallback: Option<ByteFallback>,
}

/// The distance by which the score of a character without a token lies below that of the worst token (`kUnkPenalty`
/// of google/sentencepiece `src/unigram_model.cc`).
const UNKNOWN_PENALTY: f64 = 10.0;

impl Unigram {
    /// Builds the encoder from the tokens' strings, kinds and scores, one of each per token. If there
    /// are byte tokens for all bytes, text without a token becomes them.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if there is no unknown token.
    pub fn new(
        strings: &[String],
        kinds: &[TokenKind],
        scores: Vec<f64>,
        unknown_id: Option<u32>,
    ) -> Result<Unigram> {
        let unknown_id = unknown_id
            .ok_or_else(|| Error::InvalidModelFile("there is no unknown token".to_owned()))?;
        let mut ids: Vec<u32> = (0..strings.len() as u32)
            .filter(|&id| {
                matches!(
                    kinds[id as usize],
                    TokenKind::Normal | TokenKind::UserDefined
                ) && !strings[id as usize].is_empty()
            })
            .collect();
        ids.sort_by(|&a, &b| {
            strings[a as usize]
                .as_bytes()
                .cmp(strings[b as usize].as_bytes())
        });
        // The first of equal strings keeps its id: the order is stable.
        ids.dedup_by(|later, first| strings[*later as usize] == strings[*first as usize]);
        let mut bytes = Vec::new();
        let ends = ids.iter().map(|&id| {
            bytes.extend_from_slice(strings[id as usize].as_bytes());
            bytes.len() as u32
        });
        let ends = ends.collect();
        let normal = scores.iter().zip(kinds);
        let lowest = normal
            .filter(|(_, kind)| **kind == TokenKind::Normal)
            .map(|(&score, _)| score)
            .fold(f64::INFINITY, f64::min);
        Ok(Unigram {
            bytes,
            ends,
            ids,
            unknown_id,
            unknown_score: if lowest.is_finite() { lowest } else { 0.0 } - UNKNOWN_PENALTY,
            byte_fallback: ByteFallback::complete(strings, kinds),
            scores,
        })
    }

    /// Whether no token stands for arbitrarily long text, as the unknown token does.
    pub fn keeps_text(&self) -> bool {
        self.byte_fallback.is_some()
    }

    /// Appends the ids of `text`, in which spaces are still spaces.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let text = text.replace(' ', "▁");
        // For each byte, the best segmentation that ends there: its score, its last token, and where
        // that token begins.
        let mut best = vec![(f64::NEG_INFINITY, self.unknown_id, 0usize); text.len() + 1];
        best[0].0 = 0.0;
        for (start, character) in text.char_indices() {
            let (score, ..) = best[start];
            let mut has_own_token = false;
            let mut reach = |end: usize, id: u32, token_score: f64| {
                if score + token_score > best[end].0 {
                    best[end] = (score + token_score, id, start);
                }
            };
            self.prefixes(&text.as_bytes()[start..], |length, id| {
                has_own_token |= length == character.len_utf8();
                reach(start + length, id, self.scores[id as usize]);
            });
            if !has_own_token {
                let end = start + character.len_utf8();
                reach(end, self.unknown_id, self.unknown_score);
            }
        }
        let first = ids.len();
        let mut end = text.len();
        let mut unknown_end = None;
        while end > 0 {
            let (_, id, start) = best[end];
            if id == self.unknown_id {
                let end = *unknown_end.get_or_insert(end);
                if start == 0 || best[start].1 != self.unknown_id {
                    self.push_unknown(&text[start..end], ids);
                    unknown_end = None;
                }
            } else {
                ids.push(id);
            }
            end = start;
        }
        ids[first..].reverse();
    }

    /// Appends the ids of characters without a token, last first.
    fn push_unknown(&self, text: &str, ids: &mut Vec<u32>) {
        match &self.byte_fallback {
            Some(fallback) => ids.extend(text.bytes().rev().map(|byte| fallback.id(byte))),
            None => ids.push(self.unknown_id),
        }
    }

    /// Calls `visit` with the length and the id of every token that `bytes` begins with, shortest
    /// first. It narrows the sorted range of strings that share the first bytes.
    fn prefixes(&self, bytes: &[u8], mut visit: impl FnMut(usize, u32)) {
        let mut candidates = 0..self.ids.len();
        for (length, &byte) in bytes.iter().enumerate() {
            let byte_at = |index: usize| self.text(index)[length];
            let low = partition_point(candidates.clone(), |index| byte_at(index) < byte);
            let high = partition_point(low..candidates.end, |index| byte_at(index) <= byte);
            candidates = low..high;
            if candidates.is_empty() {
                return;
            }
            // Sorted, so a text of exactly these bytes is the first of those sharing them.
            if self.text(low).len() == length + 1 {
                visit(length + 1, self.ids[low]);
                candidates.start += 1;
            }
        }
    }

    fn text(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1],
        };
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

/// The first index of the range that does not satisfy `holds`; all that do come first.
fn partition_point(range: std::ops::Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoder(tokens: &[(&str, f32)]) -> Unigram {
        let strings: Vec<String> = tokens.iter().map(|token| token.0.to_owned()).collect();
        let mut kinds = vec![TokenKind::Normal; strings.len()];
        kinds[0] = TokenKind::Unknown;
        let scores = tokens.iter().map(|token| f64::from(token.1)).collect();
        Unigram::new(&strings, &kinds, scores, Some(0)).unwrap()
    }

    fn encode(encoder: &Unigram, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        encoder.encode(text, &mut ids);
        ids
    }

    #[test]
    fn the_best_sum_wins_and_unknown_characters_fuse() {
        let tokens = [
            ("?", 0.0),
            ("a", -2.0),
            ("ab", -3.5),
            ("b", -2.0),
            ("▁a", -1.0),
            ("▁", -4.0),
        ];
        let encoder = encoder(&tokens);
        assert_eq!(encode(&encoder, "ab a"), [2, 4]);
        assert_eq!(encode(&encoder, "aéüb"), [1, 0, 3]);
        assert!(encode(&encoder, "").is_empty());
    }

    #[test]
    fn unknown_characters_become_bytes_if_all_bytes_are_there() {
        let mut strings = vec!["<unk>".to_owned(), "a".to_owned()];
        let mut kinds = vec![TokenKind::Unknown, TokenKind::Normal];
        for byte in 0..=255u8 {
            strings.push(format!("<0x{byte:02X}>"));
            kinds.push(TokenKind::Byte);
        }
        let scores = vec![-1.0; strings.len()];
        let whole = Unigram::new(&strings, &kinds, scores.clone(), Some(0)).unwrap();
        assert_eq!(encode(&whole, "aé"), [1, 2 + 0xC3, 2 + 0xA9]);
        kinds[2 + 0xC3] = TokenKind::Unused;
        let holed = Unigram::new(&strings, &kinds, scores.clone(), Some(0)).unwrap();
        assert_eq!(encode(&holed, "aé"), [1, 0]);
        assert!(Unigram::new(&strings, &kinds, scores, None).is_err());
    }

    /// Every segmentation of `text`: its score, and its ids with unknown ones fused.
    fn cuttings(tokens: &[(&str, f32)], unknown: f64, text: &str) -> Vec<(f64, Vec<u32>)> {
        let Some(first) = text.chars().next() else {
            return vec![(0.0, Vec::new())];
        };
        let mut all = Vec::new();
        let mut go_on = |id: u32, score: f64, rest: &str| {
            for (rest_score, mut ids) in cuttings(tokens, unknown, rest) {
                if !(id == 0 && ids.first() == Some(&0)) {
                    ids.insert(0, id);
                }
                all.push((score + rest_score, ids));
            }
        };
        if tokens[1..].iter().all(|token| !token.0.chars().eq([first])) {
            go_on(0, unknown, &text[first.len_utf8()..]);
        }
        for (token, id) in tokens.iter().zip(0u32..).skip(1) {
            if let Some(rest) = text.strip_prefix(token.0) {
                go_on(id, f64::from(token.1), rest);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn no_segmentation_is_better(
            tokens in prop::collection::vec(("[ab]{1,3}", -9i16..0), 1..8),
            text in "[abc]{0,8}",
        ) {
            let mut unique: Vec<(&str, f32)> = vec![("?", 0.0)];
            for (token, score) in &tokens {
                if unique.iter().all(|known| known.0 != token) {
                    unique.push((token, f32::from(*score)));
                }
            }
            let encoder = encoder(&unique);
            let ids = encode(&encoder, &text);
            let all = cuttings(&unique, encoder.unknown_score, &text);
            let best = all.iter().map(|cutting| cutting.0).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(all.iter().any(|cutting| cutting.0 == best && cutting.1 == ids));
        }
    }
}
