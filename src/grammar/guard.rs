//! Keeps JSON from running on (specification 9.2): numbers get a bounded number of digits, and what repeats itself is
//! closed. It only takes tokens away from what the grammar allows, and never all of them.

use std::collections::HashMap;

use llguidance::toktrie::TokTrie;

use crate::sample::TokenMask;

/// Digits in a row: as many as a 64-bit integer has.
const MAX_DIGITS: usize = 20;
/// Equal parts in a row that count as a repetition.
const MIN_REPETITIONS: usize = 4;
/// Tokens of a repetition within a string, at least.
const MIN_STRING_TOKENS: usize = 32;
/// Tokens of a repetition of values, at least.
const MIN_STRUCTURE_TOKENS: usize = 64;
/// Tokens of the longest part whose repetition is noticed.
const MAX_PERIOD_TOKENS: usize = 64;
/// A string whose last tokens, as many as `WINDOW_TOKENS`, are at most `MAX_DISTINCT` different ones runs on. A hash in
/// hexadecimal digits has more.
const WINDOW_TOKENS: usize = 64;
const MAX_DISTINCT: usize = 12;

/// Sets of tokens of a vocabulary.
pub(super) struct Guard {
    /// Tokens that begin with a digit.
    digits: Vec<u32>,
    /// Tokens that begin with a quote.
    quotes: Vec<u32>,
    /// Tokens that begin with a closing bracket, perhaps after white space.
    brackets: Vec<u32>,
    /// Tokens that are one letter, which text may hold everywhere.
    letters: Vec<u32>,
    /// Tokens that are one line break, which strings of JSON cannot hold.
    breaks: Vec<u32>,
    /// Tokens that are white space.
    spaces: Vec<u32>,
    /// The digits at the end of tokens, and whether they are the whole token.
    final_digits: HashMap<u32, (usize, bool)>,
}

impl Guard {
    pub(super) fn new(tokens: &TokTrie) -> Guard {
        let words = tokens.vocab_size().div_ceil(32);
        let mut guard = Guard {
            digits: vec![0; words],
            quotes: vec![0; words],
            brackets: vec![0; words],
            letters: Vec::new(),
            breaks: Vec::new(),
            spaces: vec![0; words],
            final_digits: HashMap::new(),
        };
        for id in 0..tokens.vocab_size() as u32 {
            let bytes = tokens.token(id);
            let add = |words: &mut Vec<u32>| words[id as usize / 32] |= 1 << (id % 32);
            match bytes {
                b"x" => guard.letters.push(id),
                b"\n" => guard.breaks.push(id),
                _ => {}
            }
            match bytes.first() {
                Some(byte) if byte.is_ascii_digit() => add(&mut guard.digits),
                Some(b'"') => add(&mut guard.quotes),
                _ => {}
            }
            if !bytes.is_empty() && bytes.iter().all(u8::is_ascii_whitespace) {
                add(&mut guard.spaces);
            }
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            if matches!(first, Some(b']' | b'}')) {
                add(&mut guard.brackets);
            }
            let count = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit());
            let count = count.count();
            if count > 0 {
                guard.final_digits.insert(id, (count, count == bytes.len()));
            }
        }
        guard
    }
}

/// The end of one completion, for which repetitions and digits are counted.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The last tokens. White space is left out: the indentation of a repetition may grow.
    tokens: Vec<u32>,
    /// Digits at the end.
    digits: usize,
    /// Whether the next token may be a part of a string.
    is_text: bool,
    /// Tokens of the string at the end.
    text_tokens: usize,
    /// Values have repeated themselves: everything is closed where it may end.
    is_closing: bool,
}

impl Written {
    pub(super) fn accept(&mut self, guard: &Guard, id: u32) {
        const KEPT: usize = MIN_REPETITIONS * MAX_PERIOD_TOKENS;
        if self.tokens.len() >= 2 * KEPT {
            self.tokens.drain(..KEPT);
        }
        if !has(&guard.spaces, id) {
            self.tokens.push(id);
            self.text_tokens = match self.is_text {
                true => self.text_tokens + 1,
                false => 0,
            };
        }
        self.digits = match guard.final_digits.get(&id) {
            Some((count, true)) => self.digits + count,
            Some((count, false)) => *count,
            None => 0,
        };
    }

    /// `allowed` without what continues a number or a repetition for too long.
    pub(super) fn narrow(&mut self, guard: &Guard, allowed: TokenMask) -> TokenMask {
        let allows = |ids: &[u32]| ids.iter().any(|&id| allowed.allows(id));
        self.is_text = allows(&guard.letters);
        if self.is_text && allows(&guard.breaks) {
            // No JSON.
            return allowed;
        }
        let narrowed = match self.is_text {
            true => self.narrow_text(guard, &allowed),
            false => self.narrow_structure(guard, &allowed),
        };
        match narrowed {
            Some(words) if words.iter().any(|word| *word != 0) => TokenMask::from_words(words),
            _ => allowed,
        }
    }

    /// Inside a string.
    fn narrow_text(&self, guard: &Guard, allowed: &TokenMask) -> Option<Vec<u32>> {
        let period = self.period(MIN_STRING_TOKENS);
        let window = self.rambling();
        if period.is_none() && window.is_none() {
            return None;
        }
        let closed = both(allowed, &guard.quotes);
        if closed.iter().any(|word| *word != 0) {
            return Some(closed);
        }
        // A format or a pattern may want more, but not the same again.
        let next = period.map(|period| &self.tokens[self.tokens.len() - period]);
        let mut others = allowed.words().to_vec();
        for id in window.unwrap_or_default().iter().chain(next) {
            if let Some(word) = others.get_mut(*id as usize / 32) {
                *word &= !(1 << (id % 32));
            }
        }
        Some(others)
    }

    /// Between strings.
    fn narrow_structure(&mut self, guard: &Guard, allowed: &TokenMask) -> Option<Vec<u32>> {
        if self.digits >= MAX_DIGITS {
            let words = allowed.words().iter().zip(&guard.digits);
            return Some(words.map(|(allowed, digits)| allowed & !digits).collect());
        }
        self.is_closing = self.is_closing || self.period(MIN_STRUCTURE_TOKENS).is_some();
        self.is_closing.then(|| both(allowed, &guard.brackets))
    }

    /// The last tokens of a string that are the same few ones.
    fn rambling(&self) -> Option<&[u32]> {
        if self.text_tokens < WINDOW_TOKENS {
            return None;
        }
        let window = self.tokens.last_chunk::<WINDOW_TOKENS>()?;
        let mut distinct = window.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        (distinct.len() <= MAX_DISTINCT).then_some(window)
    }

    /// The length of the part whose repetitions the last tokens, at least `least`, are.
    fn period(&self, least: usize) -> Option<usize> {
        let last = self.tokens.len();
        (1..=MAX_PERIOD_TOKENS).find(|&period| {
            let span = least.max(MIN_REPETITIONS * period);
            span <= last && {
                let tail = &self.tokens[last - span..];
                tail[period..] == tail[..span - period]
            }
        })
    }
}

fn has(words: &[u32], id: u32) -> bool {
    let word = words.get(id as usize / 32);
    word.is_some_and(|word| word & (1 << (id % 32)) != 0)
}

/// The words of the tokens that are allowed and in a set.
fn both(allowed: &TokenMask, words: &[u32]) -> Vec<u32> {
    let words = allowed.words().iter().zip(words);
    words.map(|(a, b)| a & b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_found() {
        let written = |tokens: Vec<u32>| Written {
            tokens,
            ..Written::default()
        };
        let of = |period: u32, count: usize| (0..count as u32).map(|i| i % period).collect();
        assert!(written(of(1, 32)).period(32).is_some());
        assert!(written(of(1, 31)).period(32).is_none());
        assert!(written(of(9, 36)).period(32).is_some());
        assert!(written(of(9, 35)).period(32).is_none());
        assert!(written(of(64, 256)).period(64).is_some());
        assert!(written(of(65, 400)).period(64).is_none());
        let mut broken: Vec<u32> = of(3, 60);
        broken.push(7);
        assert!(written(broken).period(32).is_none());
    }

    #[test]
    fn strings_of_few_tokens_run_on() {
        let written = |distinct: u32, text_tokens: usize| Written {
            // No part repeats itself four times.
            tokens: (0..80).map(|i| (i * i + i / 9) % distinct).collect(),
            text_tokens,
            ..Written::default()
        };
        assert!(written(8, 64).period(MIN_STRING_TOKENS).is_none());
        assert!(written(8, 64).rambling().is_some());
        assert!(written(8, 63).rambling().is_none());
        assert!(written(40, 80).rambling().is_none());
    }
}
