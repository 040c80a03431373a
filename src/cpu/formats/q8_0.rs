//! Q8_0: blocks of 32 quants of 8 bits with a sign; value = d * q. In the file: f16 d, quants.

use super::{Quantized, add_scaled, copy_f16, f16_at, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q8_0;

impl Quantized for Q8_0 {
    const BITS: usize = 8;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Signed;
    const FILE_BYTES: usize = 2 + 32;
    const SCALE_BYTES: usize = 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        std::array::from_fn(|i| word(block, 2 + 4 * i))
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        copy_f16(block, 0, row, scales);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * f32::from(q as i8))
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
