//! Guesses that a text goes on as it did at an earlier place with the same end.

use std::collections::HashMap;

use super::ends::{LONGEST_MATCH, equal_ends};

/// Equal tokens that make a place of the prompt or of the text a likely one.
const LOOK_UP_MATCH: usize = 3;
/// Places with equal ends that are compared at most, the last ones first. It bounds the time of a look-up in a text that
/// repeats a few tokens all the time.
const MAX_PLACES: usize = 64;

/// Looks the end of a text up in the text before it.
#[derive(Debug, Default)]
pub(super) struct LookUp {
    text: Vec<u32>,
    /// Index of the token that came next there.
    next: Option<usize>,
    /// The end of the last place with these tokens.
    ends: HashMap<[u32; LOOK_UP_MATCH], usize>,
    /// For each end, counted from the first possible one, the end before it with equal last tokens; 0 if there is none.
    earlier: Vec<usize>,
}

impl LookUp {
    pub(super) fn new(prompt: &[u32]) -> Self {
        let mut it = Self::default();
        for &id in prompt {
            it.add(id);
        }
        it.next = it.find();
        it
    }

    pub(super) fn push(&mut self, id: u32) -> Option<bool> {
        let expected = self.next.map(|at| self.text[at] == id);
        self.add(id);
        self.next = match (expected, self.next) {
            (Some(true), Some(at)) => Some(at + 1),
            _ => self.find(),
        };
        expected
    }

    /// Appends a token to the text and its end to the index.
    fn add(&mut self, id: u32) {
        self.text.push(id);
        if let Some(last) = self.text.last_chunk::<LOOK_UP_MATCH>() {
            let end = self.text.len();
            self.earlier.push(self.ends.insert(*last, end).unwrap_or(0));
        }
    }

    /// The end of the place that resembles the end of the text most, the last one if there are several.
    fn find(&self) -> Option<usize> {
        let earlier = |end: usize| {
            let at = end.checked_sub(LOOK_UP_MATCH)?;
            self.earlier.get(at).copied().filter(|end| *end > 0)
        };
        let ends = std::iter::successors(earlier(self.text.len()), |end| earlier(*end));
        let mut best = (0, None);
        for end in ends.take(MAX_PLACES) {
            let equal = equal_ends(&self.text[..end], &self.text);
            if equal > best.0 {
                best = (equal, Some(end));
            }
            if equal == LONGEST_MATCH {
                break;
            }
        }
        best.1
    }

    /// The next `count` tokens, if the text goes on as it did there.
    pub(super) fn expected(&self, count: usize) -> Vec<u32> {
        let mut tokens = Vec::new();
        if let Some(at) = self.next {
            for at in at..at + count {
                // A text that repeats itself goes on after its own end.
                let token = self.text.get(at).copied();
                tokens.push(token.unwrap_or_else(|| tokens[at - self.text.len()]));
            }
        }
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::draft::ends::place_after;

    /// The index finds what a comparison with every place finds.
    #[test]
    fn the_index_finds_the_place_that_resembles_the_end_most() {
        for (alphabet, seed) in [(2u32, 1u32), (3, 2), (5, 3), (50, 4)] {
            let mut look_up = LookUp::default();
            let mut random = seed;
            for _ in 0..60 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                look_up.add((random >> 16) % alphabet);
                let text = &look_up.text;
                let last_end = text.len() - 1;
                let expected = place_after(text, last_end, text, LOOK_UP_MATCH);
                assert_eq!(look_up.find(), expected, "{text:?}");
            }
        }
    }
}
