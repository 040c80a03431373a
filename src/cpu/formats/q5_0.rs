//! Q5_0: blocks of 32 quants of 5 bits; value = d * (q - 16). In the file: f16 d, fifth bits, nibbles.

use super::{Quantized, add_scaled, copy_f16, f16_at, file_bits, file_nibbles, join, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q5_0;

impl Quantized for Q5_0 {
    const BITS: usize = 5;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Shifted(16);
    const FILE_BYTES: usize = 2 + 4 + 16;
    const SCALE_BYTES: usize = 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        join(file_nibbles(&block[6..]), file_bits(word(block, 2)), 4)
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        copy_f16(block, 0, row, scales);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * (f32::from(q) - 16.0))
    }

    type Head<S: Simd> = S::Floats;
    type Factors<S: Simd> = S::Floats;

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::f16s(scales) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(head: S::Floats, _scales: *const u8, _run: usize) -> S::Floats {
        head
    }

    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        factor: S::Floats,
        x_scale: *const f32,
        _x_sums: *const f32,
    ) -> S::Floats {
        unsafe { add_scaled::<S>(total, dots[0], factor, x_scale) }
    }
}
