//! Sums of weights in f32 in a defined order.

/// Terms per block. Each block is summed from 0 and then added to the sum of the blocks before it: a plain
/// f32 sum over 150,000 weights would lose every weight below 6e-8 of the total.
pub(super) const BLOCK: usize = 256;

/// A sum whose value is known after each term.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunningSum {
    blocks: f32,
    block: f32,
    in_block: usize,
}

impl RunningSum {
    /// Adds one term.
    pub(super) fn add(&mut self, term: f32) {
        self.block += term;
        self.in_block += 1;
        if self.in_block == BLOCK {
            *self = Self {
                blocks: self.blocks + self.block,
                ..Self::default()
            };
        }
    }

    /// The sum of the terms so far.
    pub(super) fn value(&self) -> f32 {
        self.blocks + self.block
    }
}

#[cfg(test)]
mod tests {
    use super::RunningSum;

    #[test]
    fn keeps_terms_that_a_plain_sum_loses() {
        let mut sum = RunningSum::default();
        let mut plain = 1.0f32;
        sum.add(1.0);
        for _ in 0..150_000 {
            sum.add(5e-8);
            plain += 5e-8;
        }
        assert_eq!(plain, 1.0);
        assert!((sum.value() - 1.0075).abs() < 1e-4, "{}", sum.value());
    }

    #[test]
    fn never_decreases() {
        let mut sum = RunningSum::default();
        let mut before = 0.0;
        for i in 0..2000 {
            sum.add(1.0 / (1.0 + i as f32));
            assert!(sum.value() >= before);
            before = sum.value();
        }
    }
}
