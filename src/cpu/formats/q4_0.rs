//! Q4_0: blocks of 32 quants of 4 bits; value = d * (q - 8). In the file: f16 d, nibbles.

use super::{Quantized, block_scales::one_scale, f16_at, file_nibbles};
use crate::simd::{Simd, Weights};

pub(crate) struct Q4_0;

impl Quantized for Q4_0 {
    const BITS: usize = 4;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Shifted(8);
    one_scale!();
    const FILE_BYTES: usize = 2 + 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[2..])
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * (f32::from(q) - 8.0))
    }
}
