//! SentencePiece BPE: merges adjacent symbols by the score of the token they form. Special tokens and the
//! space prefix are handled before.

use std::collections::BinaryHeap;

use super::text_index::TextIndex;
use crate::{Error, Result};

/// A SentencePiece BPE encoder.
///
/// It merges as llama.cpp does: any two neighbors whose joined text is a token can merge, highest score first,
/// leftmost first among equals. Characters that end without a token become bytes. (The `tokenizers` crate
/// ranks pairs instead of tokens, so ties differ there.)
#[derive(Debug)]
pub struct SentencePieceBpe {
    tokens: TextIndex,
    scores: Vec<f32>,
    /// The token of each byte that no other token covers.
    byte_ids: Vec<u32>,
    /// No token has a ▁ after another character. Then no merge crosses the start of a word, and words
    /// can be merged one by one, which takes little memory for strings of any length.
    pub words_stand_apart: bool,
}

impl SentencePieceBpe {
    /// Builds the encoder from the tokens' strings and scores, one of each per token.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if a byte has no token and there is no unknown token.
    pub fn new(
        strings: &[String],
        scores: &[f32],
        unknown_id: Option<u32>,
    ) -> Result<SentencePieceBpe> {
        let tokens = TextIndex::new(strings);
        let byte_ids = (0..=255u8)
            .map(|byte| {
                tokens
                    .get(format!("<0x{byte:02X}>").as_bytes())
                    .or_else(|| tokens.get(&[byte]))
                    .or(unknown_id)
                    .ok_or_else(|| {
                        Error::InvalidModelFile(format!(
                            "no token for byte 0x{byte:02X} and no unknown token"
                        ))
                    })
            })
            .collect::<Result<_>>()?;
        // Adding zero turns -0 into 0, so that they tie.
        let scores = scores.iter().map(|score| score + 0.0).collect();
        let words_stand_apart = words_stand_apart(strings);
        Ok(SentencePieceBpe {
            tokens,
            scores,
            byte_ids,
            words_stand_apart,
        })
    }

    /// Appends the ids of `text`, in which spaces are still spaces.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let text = text.replace(' ', "▁");
        let mut rest = &text[..];
        while self.words_stand_apart
            && let Some(word_bytes) = first_word_bytes(rest)
        {
            self.encode_word(&rest[..word_bytes], ids);
            rest = &rest[word_bytes..];
        }
        self.encode_word(rest, ids);
    }

    fn encode_word(&self, text: &str, ids: &mut Vec<u32>) {
        let mut symbols = Symbols::new(text);
        let mut merges = BinaryHeap::new();
        for left in 1..symbols.list.len() {
            merges.extend(self.merge_at(&symbols, left - 1));
        }
        while let Some(merge) = merges.pop() {
            if !symbols.apply(&merge) {
                continue;
            }
            let previous = symbols.list[merge.left].previous;
            if previous != NONE {
                merges.extend(self.merge_at(&symbols, previous));
            }
            merges.extend(self.merge_at(&symbols, merge.left));
        }
        let mut at = if symbols.list.is_empty() { NONE } else { 0 };
        while at != NONE {
            let piece = symbols.bytes(at);
            match self.tokens.get(piece) {
                Some(id) => ids.push(id),
                None => ids.extend(piece.iter().map(|&byte| self.byte_ids[usize::from(byte)])),
            }
            at = symbols.list[at].next;
        }
    }

    /// The merge of symbol `left` with its right neighbor, if they form a token.
    fn merge_at(&self, symbols: &Symbols, left: usize) -> Option<Merge> {
        let symbol = &symbols.list[left];
        let right = symbol.next;
        if right == NONE {
            return None;
        }
        let joined_bytes = symbol.len_bytes + symbols.list[right].len_bytes;
        let joined = &symbols.text.as_bytes()[symbol.start..symbol.start + joined_bytes];
        let score = self.scores[self.tokens.get(joined)? as usize];
        Some(Merge {
            score,
            left,
            right,
            joined_bytes,
        })
    }
}

/// Whether no token has a ▁ after another character.
pub fn words_stand_apart(strings: &[String]) -> bool {
    strings.iter().all(|text| first_word_bytes(text).is_none())
}

/// Length in bytes of the first word of `text`, up to the first ▁ after another character; `None` if
/// there is no second word.
fn first_word_bytes(text: &str) -> Option<usize> {
    let start = text.len() - text.trim_start_matches('▁').len();
    text[start..].find('▁').map(|end| start + end)
}

/// No neighbor.
const NONE: usize = usize::MAX;

/// The symbols of a text: a linked list over a vector, at first one per character.
struct Symbols<'t> {
    text: &'t str,
    list: Vec<Symbol>,
}

struct Symbol {
    start: usize,
    /// 0 once merged into its left neighbor.
    len_bytes: usize,
    previous: usize,
    next: usize,
}

impl<'t> Symbols<'t> {
    fn new(text: &'t str) -> Symbols<'t> {
        let mut list: Vec<Symbol> = text
            .char_indices()
            .enumerate()
            .map(|(index, (start, character))| Symbol {
                start,
                len_bytes: character.len_utf8(),
                previous: index.checked_sub(1).unwrap_or(NONE),
                next: index + 1,
            })
            .collect();
        if let Some(last) = list.last_mut() {
            last.next = NONE;
        }
        Symbols { text, list }
    }

    fn bytes(&self, index: usize) -> &'t [u8] {
        let symbol = &self.list[index];
        &self.text.as_bytes()[symbol.start..symbol.start + symbol.len_bytes]
    }

    /// Merges, unless one of the two symbols has merged with another one since. Returns whether it did.
    fn apply(&mut self, merge: &Merge) -> bool {
        let left_bytes = self.list[merge.left].len_bytes;
        let right_bytes = self.list[merge.right].len_bytes;
        if left_bytes == 0 || right_bytes == 0 || left_bytes + right_bytes != merge.joined_bytes {
            return false;
        }
        let next = self.list[merge.right].next;
        self.list[merge.right].len_bytes = 0;
        self.list[merge.left].len_bytes = merge.joined_bytes;
        self.list[merge.left].next = next;
        if next != NONE {
            self.list[next].previous = merge.left;
        }
        true
    }
}

/// A possible merge; the greatest is applied first.
struct Merge {
    score: f32,
    left: usize,
    right: usize,
    joined_bytes: usize,
}

impl Ord for Merge {
    fn cmp(&self, other: &Merge) -> std::cmp::Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Merge {
    fn partial_cmp(&self, other: &Merge) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Merge {
    fn eq(&self, other: &Merge) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Merge {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoder(tokens: &[(&str, f32)]) -> SentencePieceBpe {
        let strings: Vec<String> = tokens.iter().map(|token| token.0.to_owned()).collect();
        let scores: Vec<f32> = tokens.iter().map(|token| token.1).collect();
        SentencePieceBpe::new(&strings, &scores, Some(0)).unwrap()
    }

    /// The reference implementation: rescans all neighbors after every merge.
    fn naive(tokens: &[(&str, f32)], text: &str) -> Vec<u32> {
        let find = |text: &str| tokens.iter().position(|token| token.0 == text);
        let mut pieces: Vec<String> = text.chars().map(String::from).collect();
        loop {
            let mut best: Option<(f32, usize)> = None;
            for left in 0..pieces.len().saturating_sub(1) {
                if let Some(id) = find(&(pieces[left].clone() + &pieces[left + 1])) {
                    let score = tokens[id].1;
                    if best.is_none_or(|(highest, _)| score > highest) {
                        best = Some((score, left));
                    }
                }
            }
            let Some((_, left)) = best else { break };
            let right = pieces.remove(left + 1);
            pieces[left] += &right;
        }
        pieces
            .iter()
            .flat_map(|piece| match find(piece) {
                Some(id) => vec![id as u32],
                None => vec![0; piece.len()],
            })
            .collect()
    }

    #[test]
    fn merges_by_score_and_leftmost_on_ties() {
        let tokens = [
            ("?", 0.0),
            ("a", -9.0),
            ("aa", -1.0),
            ("▁", -9.0),
            ("▁a", -1.0),
        ];
        let encoder = encoder(&tokens);
        let mut ids = Vec::new();
        encoder.encode(" aaaé", &mut ids);
        assert_eq!(ids, [4, 2, 0, 0]);
    }

    proptest! {
        #[test]
        fn equals_rescanning_after_every_merge(
            tokens in prop::collection::vec(("▁{0,2}[abc]{1,4}|[ab▁]{1,4}", -4i32..0), 1..24),
            text in "[abcd ]{0,40}",
        ) {
            let mut unique: Vec<(&str, f32)> = vec![("?", 0.0)];
            for (token, score) in &tokens {
                if unique.iter().all(|known| known.0 != token) {
                    unique.push((token, *score as f32));
                }
            }
            let mut ids = Vec::new();
            encoder(&unique).encode(&text, &mut ids);
            prop_assert_eq!(ids, naive(&unique, &text.replace(' ', "▁")));
        }
    }
}
