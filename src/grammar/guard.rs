//! Keeps JSON from running on (specification 9.2): numbers get a bounded number of digits, and what repeats itself is
//! closed. It only takes tokens away from what the grammar allows, and never all of them.

use std::collections::HashMap;

use llguidance::toktrie::TokTrie;

use super::closing::{Closing, Place};
use crate::sample::TokenMask;

/// Digits in a row: as many as a 64-bit integer has.
const MAX_DIGITS: usize = 20;
/// Equal parts in a row that count as a repetition.
const MIN_REPETITIONS: usize = 4;
/// Tokens of a repetition within a string, at least.
const MIN_STRING_TOKENS: usize = 32;
/// Bytes of a repetition of elements or members, at least, without the white space around them.
const MIN_STRUCTURE_BYTES: usize = 160;
/// Bytes of the longest element or member whose repetition is noticed.
const MAX_PERIOD_BYTES: usize = 400;
/// Closed repetitions after which the array around them is closed: its elements repeat themselves inside.
const MAX_CLOSED_IN_ARRAY: u32 = 2;
/// Tokens of the longest part whose repetition is noticed.
const MAX_PERIOD_TOKENS: usize = 64;

/// Sets of tokens of a vocabulary.
pub(super) struct Guard {
    /// Tokens that begin with a digit.
    digits: Vec<u32>,
    /// Tokens that begin with a quote.
    quotes: Vec<u32>,
    /// Tokens of closing brackets and white space alone.
    only_brackets: Vec<u32>,
    /// Tokens of white space alone.
    spaces: Vec<u32>,
    /// Tokens that begin another element or member, where they begin outside of a string and in one.
    commas: Vec<u32>,
    commas_after_string: Vec<u32>,
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
            spaces: vec![0; words],
            only_brackets: vec![0; words],
            commas: vec![0; words],
            commas_after_string: vec![0; words],
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
            let mut visible = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
            match visible.next() {
                None => add(&mut guard.spaces),
                Some(b']' | b'}') if visible.all(|byte| b"]}".contains(byte)) => {
                    add(&mut guard.only_brackets);
                }
                Some(_) => {}
            }
            if Place::default().meets_comma(bytes) {
                add(&mut guard.commas);
            }
            if Place::IN_STRING.meets_comma(bytes) {
                add(&mut guard.commas_after_string);
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

/// An array or object that has begun and not ended.
#[derive(Debug, Clone)]
struct Container {
    is_array: bool,
    /// Arrays and objects in it, at any depth, that were closed because their parts repeated.
    closed_inside: u32,
}

/// The end of one completion, for which repetitions and digits are counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    /// The last tokens.
    tokens: Vec<u32>,
    /// Digits at the end.
    digits: usize,
    /// The closing that has begun.
    closing: Option<Closing>,
    place: Place,
    /// The arrays and objects around the end, the innermost last.
    open: Vec<Container>,
    /// The last bytes, without white space outside of strings.
    text: Vec<u8>,
}

impl Written {
    pub(super) fn accept(&mut self, guard: &Guard, trie: &TokTrie, id: u32) {
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
        self.follow(trie.token(id));
    }

    /// Decides whether the array or object around `bytes`, which come next, is to be closed.
    fn follow(&mut self, bytes: &[u8]) {
        const KEPT: usize = MIN_REPETITIONS * MAX_PERIOD_BYTES;
        for &byte in bytes {
            if self.place.in_string || !byte.is_ascii_whitespace() {
                self.text.push(byte);
            }
            if !self.place.in_string {
                self.track(byte);
            }
            self.place.step(byte);
        }
        if self.text.len() >= 2 * KEPT {
            self.text.drain(..KEPT);
        }
        if let Some(closing) = &mut self.closing {
            if closing.is_closed_by(bytes) {
                self.closing = self.around_repetitions();
                self.tokens.clear();
                self.text.clear();
            }
        } else if let Some(period) = period(&self.text, MIN_STRUCTURE_BYTES, MAX_PERIOD_BYTES) {
            let span = MIN_STRUCTURE_BYTES.max(MIN_REPETITIONS * period);
            let repeated = &self.text[self.text.len() - span..];
            self.closing = Closing::begin(repeated, self.place.in_string);
        }
    }

    /// Follows a byte outside of strings.
    fn track(&mut self, byte: u8) {
        match byte {
            b'[' | b'{' => self.open.push(Container {
                is_array: byte == b'[',
                closed_inside: 0,
            }),
            b']' | b'}' => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Counts what was closed in the arrays around it. Closes the innermost one in which that has happened too often. Objects
    /// stay open: their members differ.
    fn around_repetitions(&mut self) -> Option<Closing> {
        for container in &mut self.open {
            container.closed_inside += 1;
        }
        let is_full = |it: &Container| it.is_array && it.closed_inside >= MAX_CLOSED_IN_ARRAY;
        let within = self.open.iter().rev().position(is_full)?;
        (!self.place.in_string).then(|| Closing::around(within))
    }

    /// `allowed` without what continues a number or a repetition for too long.
    pub(super) fn narrow(&self, guard: &Guard, allowed: TokenMask) -> TokenMask {
        let allows = |ids: &[u32]| ids.iter().any(|&id| allowed.allows(id));
        let is_text = allows(&guard.letters);
        if is_text && allows(&guard.breaks) {
            // No JSON.
            return allowed;
        }
        let allowed = match &self.closing {
            Some(closing) if closing.in_string() => {
                without(allowed, &guard.commas_after_string, &[])
            }
            Some(_) => match only(&allowed, &guard.only_brackets) {
                Some(closers) => return closers,
                None => without(allowed, &guard.commas, &guard.spaces),
            },
            None => allowed,
        };
        let words = || allowed.words().iter();
        let kept: Vec<u32> = if !is_text && self.digits >= MAX_DIGITS {
            let words = words().zip(&guard.digits);
            words.map(|(allowed, digits)| allowed & !digits).collect()
        } else if is_text
            && let Some(period) = period(&self.tokens, MIN_STRING_TOKENS, MAX_PERIOD_TOKENS)
        {
            if let Some(closed) = only(&allowed, &guard.quotes) {
                return closed;
            }
            // A format or a pattern may want more, but not the same again.
            let next = self.tokens[self.tokens.len() - period];
            let mut others = allowed.words().to_vec();
            if let Some(word) = others.get_mut(next as usize / 32) {
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
}

/// The length, at most `longest`, of the part whose repetitions the end of `written`, at least `least` long, are.
fn period<T: PartialEq>(written: &[T], least: usize, longest: usize) -> Option<usize> {
    let last = written.len();
    (1..=longest).find(|&period| {
        let span = least.max(MIN_REPETITIONS * period);
        span <= last && {
            let tail = &written[last - span..];
            tail[period..] == tail[..span - period]
        }
    })
}

/// The tokens of `allowed` that are in `set`, if there are any.
fn only(allowed: &TokenMask, set: &[u32]) -> Option<TokenMask> {
    let words = allowed.words().iter().zip(set);
    let kept: Vec<u32> = words.map(|(allowed, set)| allowed & set).collect();
    kept.iter()
        .any(|word| *word != 0)
        .then(|| TokenMask::from_words(kept))
}

/// The tokens of `allowed` that are not in `set`, or all if no others go on; those of `spaces` do not.
fn without(allowed: TokenMask, set: &[u32], spaces: &[u32]) -> TokenMask {
    let words = allowed.words().iter().zip(set);
    let kept: Vec<u32> = words.map(|(allowed, set)| allowed & !set).collect();
    let spaces = spaces.iter().chain(std::iter::repeat(&0));
    match kept
        .iter()
        .zip(spaces)
        .any(|(word, spaces)| word & !spaces != 0)
    {
        true => TokenMask::from_words(kept),
        false => allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_found() {
        let of = |period: u32, count: usize| -> Vec<u32> {
            (0..count as u32).map(|i| i % period).collect()
        };
        assert!(period(&of(1, 32), 32, 64).is_some());
        assert!(period(&of(1, 31), 32, 64).is_none());
        assert!(period(&of(9, 36), 32, 64).is_some());
        assert!(period(&of(9, 35), 32, 64).is_none());
        assert!(period(&of(64, 256), 64, 64).is_some());
        assert!(period(&of(65, 400), 64, 64).is_none());
        let mut broken: Vec<u32> = of(3, 60);
        broken.push(7);
        assert!(period(&broken, 32, 64).is_none());
    }
}
