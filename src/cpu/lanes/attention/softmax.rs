//! Softmax over the pages of a context, one page after the other (Milakov and Gimelshein 2018,
//! <https://arxiv.org/abs/1805.02867>).

use crate::lanes::{
    f32x8::{F32x8, LANES},
    functions::{exp, exp_one, tanh},
    kv::PAGE_TOKENS,
};

/// Tokens of a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    begin: usize,
    end: usize,
}

impl From<[u32; 2]> for Range {
    #[inline(always)]
    fn from([begin, end]: [u32; 2]) -> Range {
        Range {
            begin: begin as usize,
            end: end as usize,
        }
    }
}

/// The state of a query's softmax after some pages.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Running {
    /// The largest score.
    pub(super) peak: f32,
    /// Sums of the weights relative to the peak, of every eighth token.
    pub(super) sums: [f32; LANES],
}

impl Running {
    /// Sets the state before the first page. A constant would be data of the kernel module.
    #[inline(always)]
    pub(super) fn reset(&mut self) {
        self.peak = f32::NEG_INFINITY;
        for sum in &mut self.sums {
            *sum = 0.0;
        }
    }

    /// Begins with a score that has no value.
    #[inline(always)]
    pub(super) fn begin_with(&mut self, score: f32) {
        self.peak = score;
        self.sums[0] = 1.0;
    }

    /// The sum of all weights.
    #[inline(always)]
    pub(super) fn total<L: F32x8>(&self) -> f32 {
        L::from_array(self.sums).sum()
    }

    /// Replaces the scores of a page by weights, 0 for tokens that are not in the range. Scores `s` are
    /// `soft_cap * tanh(s / soft_cap)` before, unless it is 0. Returns the factor of the values of earlier pages.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    pub(super) fn weigh<L: F32x8>(
        &mut self,
        scores: &mut [[f32; LANES]; PAGE_TOKENS / LANES],
        Range { begin, end }: Range,
        soft_cap: f32,
    ) -> f32 {
        if soft_cap != 0.0 {
            let cap = L::splat(soft_cap);
            for (i, scores) in scores.iter_mut().enumerate() {
                if (i + 1) * LANES > begin && i * LANES < end {
                    *scores = cap.mul(tanh(L::from_array(*scores).div(cap))).to_array();
                }
            }
        }
        let flat = scores.as_flattened_mut();
        // SAFETY: they are tokens of a page.
        unsafe { std::hint::assert_unchecked(begin <= PAGE_TOKENS && end <= PAGE_TOKENS) };
        for i in 0..begin {
            flat[i] = f32::NEG_INFINITY;
        }
        for i in end..PAGE_TOKENS {
            flat[i] = f32::NEG_INFINITY;
        }
        let mut peak = L::splat(self.peak);
        for scores in &*scores {
            peak = L::from_array(*scores).max(peak);
        }
        let peak = peak.peak();
        let factor = match peak == self.peak {
            true => 1.0,
            false => exp_one::<L>(self.peak - peak),
        };
        self.peak = peak;
        let mut sums = L::splat(0.0);
        for scores in scores {
            let weights = exp(L::from_array(*scores).sub(L::splat(peak)));
            sums = sums.add(weights);
            *scores = weights.to_array();
        }
        let before = L::from_array(self.sums).mul(L::splat(factor));
        self.sums = before.add(sums).to_array();
        factor
    }
}
