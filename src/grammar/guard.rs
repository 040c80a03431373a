//! Keeps JSON from running on (specification 9.1): numbers get a bounded number of digits, and what repeats itself is
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
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    /// The last tokens.
    tokens: Vec<u32>,
    /// Digits at the end.
    digits: usize,
}

impl Written {
    pub(super) fn accept(&mut self, guard: &Guard, id: u32) {
        const KEPT: usize = MIN_REPETITIONS * MAX_PERIOD_TOKENS;
        if self.tokens.len() >= 2 * KEPT {
            self.tokens.drain(..KEPT);
        }
        self.tokens.push(id);
        self.digits = match guard.final_digits.get(&id) {
            Some((count, true)) => self.digits + count,
            Some((count, false)) => *count,
            None => 0,
        };
    }

    /// `allowed` without what continues a number or a repetition for too long.
    pub(super) fn narrow(&self, guard: &Guard, allowed: TokenMask) -> TokenMask {
        let allows = |ids: &[u32]| ids.iter().any(|&id| allowed.allows(id));
        let is_text = allows(&guard.letters);
        if is_text && allows(&guard.breaks) {
            // No JSON.
            return allowed;
        }
        let (closers, least) = match is_text {
            true => (&guard.quotes, MIN_STRING_TOKENS),
            false => (&guard.brackets, MIN_STRUCTURE_TOKENS),
        };
        let words = || allowed.words().iter();
        let kept: Vec<u32> = if !is_text && self.digits >= MAX_DIGITS {
            let words = words().zip(&guard.digits);
            words.map(|(allowed, digits)| allowed & !digits).collect()
        } else if let Some(period) = self.period(least) {
            let closed: Vec<u32> = words().zip(closers).map(|(a, b)| a & b).collect();
            if closed.iter().any(|word| *word != 0) {
                return TokenMask::from_words(closed);
            }
            // A format or a pattern may want more, but not the same again.
            let next = self.tokens[self.tokens.len() - period];
            let mut others = allowed.words().to_vec();
            if let (true, Some(word)) = (is_text, others.get_mut(next as usize / 32)) {
                *word &= !(1 << (next % 32));
            }
            others
        } else {
            return allowed;
        };
        match kept.iter().any(|word| *word != 0) {
            true => TokenMask::from_words(kept),
            false => allowed,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_found() {
        let written = |tokens: Vec<u32>| Written { tokens, digits: 0 };
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
}
