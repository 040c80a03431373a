//! Stage 7: temperature and softmax, as weights `exp((z - z_max) / T)` without the common factor.

use super::exp::{self, exp};
use super::running_sum::BLOCK;

/// Maps logits of one row to weights. The best token weighs exactly 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weigher {
    /// Largest logit of the row.
    pub(super) z_max: f32,
    /// The temperature, at least [`super::SamplingParams::GREEDY_BELOW`].
    pub(super) temperature: f32,
}

impl Weigher {
    /// The logit's weight, or 0 if it underflows.
    pub(super) fn weight(self, z: f32) -> f32 {
        exp(self.argument(z))
    }

    /// The lowest logit whose weight is above 0, up to rounding: tokens below it cannot be drawn.
    pub(super) fn lowest_in_reach(self) -> f32 {
        self.z_max + exp::MIN_ARGUMENT * self.temperature
    }

    fn argument(self, z: f32) -> f32 {
        (z - self.z_max) / self.temperature
    }

    /// The weight of the whole row, summed in the order of ids: the softmax's denominator.
    pub(super) fn total(self, logits: &[f32]) -> f32 {
        let mut total = 0.0;
        // The same order of additions as in `RunningSum`.
        self.each_block(logits, |weights| total += weights.iter().sum::<f32>());
        total
    }

    /// Passes the weights of the row to `sum`, block by block, so that the exponentials vectorize.
    pub(super) fn each_block(self, logits: &[f32], mut sum: impl FnMut(&[f32])) {
        let mut weights = [0.0f32; BLOCK];
        for block in logits.chunks(BLOCK) {
            for (weight, &z) in weights.iter_mut().zip(block) {
                *weight = self.weight(z);
            }
            sum(&weights[..block.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::running_sum::RunningSum;
    use super::*;

    #[test]
    fn softmax_of_the_vectors() {
        let z = [3.0, 2.5, 2.0, 1.0, 0.0, -1.0];
        let weigher = Weigher {
            z_max: 3.0,
            temperature: 1.0,
        };
        let expected = [0.459169, 0.278500, 0.168919, 0.062142, 0.022861, 0.008410];
        for (z_i, p) in z.into_iter().zip(expected) {
            assert!((weigher.weight(z_i) / weigher.total(&z) - p).abs() < 1e-6);
        }
    }

    #[test]
    fn total_is_the_running_sum_over_ids() {
        let z: Vec<f32> = (0..1000).map(|i| ((i * 37 % 101) as f32) * -0.1).collect();
        let weigher = Weigher {
            z_max: 0.0,
            temperature: 0.7,
        };
        let mut sum = RunningSum::default();
        z.iter().for_each(|&z| sum.add(weigher.weight(z)));
        assert_eq!(weigher.total(&z), sum.value());
    }

    #[test]
    fn extreme_logits_do_not_overflow() {
        let weigher = Weigher {
            z_max: f32::MAX,
            temperature: 1e-5,
        };
        assert_eq!(weigher.weight(f32::MAX), 1.0);
        assert_eq!(weigher.weight(f32::MIN), 0.0);
        assert!(weigher.lowest_in_reach() > f32::NEG_INFINITY);
    }
}
