//! Stage 5: which tokens a constraint allows.

/// A set of token ids: 32 per word, id `i` is bit `i % 32` of word `i / 32`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
}

impl TokenMask {
    /// The set with the given words; ids beyond them are not in it.
    pub fn from_words(words: Vec<u32>) -> TokenMask {
        TokenMask { words }
    }

    /// All ids below `len`.
    pub fn below(len: usize) -> TokenMask {
        let mut words = vec![u32::MAX; len / 32];
        if !len.is_multiple_of(32) {
            words.push((1 << (len % 32)) - 1);
        }
        TokenMask { words }
    }

    /// These ids, of which those from `len` on are left out.
    pub fn of(ids: impl IntoIterator<Item = u32>, len: usize) -> TokenMask {
        let mut words = vec![0; len.div_ceil(32)];
        for id in ids.into_iter().filter(|id| (*id as usize) < len) {
            words[id as usize / 32] |= 1 << (id % 32);
        }
        TokenMask { words }
    }

    /// Takes `id` out of the set.
    pub fn remove(&mut self, id: u32) {
        if let Some(word) = self.words.get_mut(id as usize / 32) {
            *word &= !(1 << (id % 32));
        }
    }

    /// Takes out all ids that are not in `other`.
    pub fn intersect(&mut self, other: &TokenMask) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        for (word, other) in self.words.iter_mut().zip(others) {
            *word &= other;
        }
    }

    /// Whether no id is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Whether `id` is allowed.
    pub fn allows(&self, id: u32) -> bool {
        let word = self.words.get(id as usize / 32).copied().unwrap_or(0);
        word >> (id % 32) & 1 == 1
    }

    /// Makes the logits of all other ids `-inf`.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        let words = self.words.iter().copied().chain(std::iter::repeat(0));
        for (word, row) in words.zip(logits.chunks_mut(32)) {
            match word {
                u32::MAX => {}
                0 => row.fill(f32::NEG_INFINITY),
                _ => forbid_clear_bits(word, row),
            }
        }
    }
}

fn forbid_clear_bits(word: u32, row: &mut [f32]) {
    for (bit, z) in row.iter_mut().enumerate() {
        if word >> bit & 1 == 0 {
            *z = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TokenMask;
    use proptest::prelude::*;

    fn any_word() -> impl Strategy<Value = u32> {
        let bit = (0..32u32).prop_map(|bit| 1 << bit);
        prop_oneof![
            Just(0),
            Just(u32::MAX),
            bit.clone(),
            bit.prop_map(|bit: u32| !bit),
            any::<u32>()
        ]
    }

    proptest! {
        #[test]
        fn allowed_logits_stay_and_others_become_minus_infinity(
            words in prop::collection::vec(any_word(), 0..6),
            row in 0usize..200,
        ) {
            let mask = TokenMask::from_words(words);
            let mut logits = vec![1.5; row];
            mask.apply(&mut logits);
            for (id, z) in (0..).zip(logits) {
                prop_assert_eq!(z, if mask.allows(id) { 1.5 } else { f32::NEG_INFINITY });
            }
        }
    }

    #[test]
    fn sets_of_ids() {
        let ids = |mask: &TokenMask| (0..200).filter(|&id| mask.allows(id)).collect::<Vec<_>>();
        for len in [0, 1, 31, 32, 33, 64, 70] {
            let all = TokenMask::below(len);
            assert_eq!(ids(&all), (0..len as u32).collect::<Vec<_>>());
            assert_eq!(all, TokenMask::of(0..200, len));
            assert_eq!(all.is_empty(), len == 0);
        }
        let mut mask = TokenMask::of([3, 32, 69, 70], 70);
        assert_eq!(ids(&mask), [3, 32, 69]);
        mask.remove(32);
        mask.remove(900);
        assert_eq!(ids(&mask), [3, 69]);
        mask.intersect(&TokenMask::of([3, 5], 32));
        assert_eq!(ids(&mask), [3]);
    }

    #[test]
    fn bits_count_from_the_lowest_of_the_first_word() {
        let mask = TokenMask::from_words(vec![0b101, 1 << 31]);
        let allowed: Vec<u32> = (0..100).filter(|&id| mask.allows(id)).collect();
        assert_eq!(allowed, [0, 2, 63]);
    }
}
