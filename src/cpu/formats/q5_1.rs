//! Q5_1: blocks of 32 quants of 5 bits; value = d * q + m. In the file: f16 d and m, fifth bits, nibbles.

use super::{Quantized, block_scales::scale_and_minimum, file_bits, file_nibbles, join, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q5_1;

impl Quantized for Q5_1 {
    const BITS: usize = 5;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Unsigned;
    scale_and_minimum!();
    const FILE_BYTES: usize = 4 + 4 + 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        join(file_nibbles(&block[8..]), file_bits(word(block, 4)), 4)
    }
}
