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
    fn bits_count_from_the_lowest_of_the_first_word() {
        let mask = TokenMask::from_words(vec![0b101, 1 << 31]);
        let allowed: Vec<u32> = (0..100).filter(|&id| mask.allows(id)).collect();
        assert_eq!(allowed, [0, 2, 63]);
    }
}
