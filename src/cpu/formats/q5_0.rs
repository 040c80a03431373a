//! Q5_0: blocks of 32 quants of 5 bits; value = d * (q - 16). In the file: f16 d, fifth bits, nibbles.

use super::{Quantized, block_scales::one_scale, f16_at, file_bits, file_nibbles, join, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q5_0;

impl Quantized for Q5_0 {
    const BITS: usize = 5;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Shifted(16);
    one_scale!();
    const FILE_BYTES: usize = 2 + 4 + 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        join(file_nibbles(&block[6..]), file_bits(word(block, 2)), 4)
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * (f32::from(q) - 16.0))
    }
}
