//! Q8_0: blocks of 32 quants of 8 bits with a sign; value = d * q. In the file: f16 d, quants.

use super::{Quantized, block_scales::one_scale, f16_at, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q8_0;

impl Quantized for Q8_0 {
    const BITS: usize = 8;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Signed;
    one_scale!();
    const FILE_BYTES: usize = 2 + 32;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        std::array::from_fn(|i| word(block, 2 + 4 * i))
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * f32::from(q as i8))
    }
}
