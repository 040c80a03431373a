//! Q4_1: blocks of 32 quants of 4 bits; value = d * q + m. In the file: f16 d and m, nibbles.

use super::{Quantized, block_scales::scale_and_minimum, file_nibbles};
use crate::simd::{Simd, Weights};

pub(crate) struct Q4_1;

impl Quantized for Q4_1 {
    const BITS: usize = 4;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Unsigned;
    scale_and_minimum!();
    const FILE_BYTES: usize = 4 + 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[4..])
    }
}
