//! Q4_1: blocks of 32 quants of 4 bits; value = d * q + m. In the file: f16 d and m, nibbles.

use super::{Quantized, add_scaled, copy_f16, f16_at, file_nibbles};
use crate::simd::{Simd, Weights};

pub(crate) struct Q4_1;

impl Quantized for Q4_1 {
    const BITS: usize = 4;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Unsigned;
    const SUMS: bool = true;
    const FILE_BYTES: usize = 4 + 16;
    /// f16 d, then m.
    const SCALE_BYTES: usize = 32;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[4..])
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        copy_f16(block, 0, row, scales);
        copy_f16(block, 2, row, &mut scales[16..]);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let (d, m) = (f16_at(scales, 2 * row), f16_at(scales, 16 + 2 * row));
        quants.map(|q| d * f32::from(q) + m)
    }

    type Head<S: Simd> = [S::Floats; 2];
    type Factors<S: Simd> = [S::Floats; 2];

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
        unsafe { [S::f16s(scales), S::f16s(scales.add(16))] }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(
        head: [S::Floats; 2],
        _scales: *const u8,
        _run: usize,
    ) -> [S::Floats; 2] {
        head
    }

    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        [d, m]: [S::Floats; 2],
        x_scale: *const f32,
        x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let total = add_scaled::<S>(total, dots[0], d, x_scale);
            S::add(total, S::mul(m, S::splat_f32(x_sums)))
        }
    }
}
