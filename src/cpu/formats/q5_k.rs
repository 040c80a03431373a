//! Q5_K: blocks of 256 quants of 5 bits in runs of 32; value = d * scale * q - dmin * minimum. In the file: the
//! scales of `k_scales.rs`, fifth bits (bit r of byte i is that of column i of run r), nibbles as in Q4_K.

use super::{Quantized, add_scaled, k_scales, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q5K;

/// Where the nibbles of a block start.
const LOW: usize = k_scales::FILE_BYTES + 32;

impl Quantized for Q5K {
    const BITS: usize = 5;
    const RUNS: usize = 8;
    const WEIGHTS: Weights = Weights::Unsigned;
    const SUMS: bool = true;
    const FILE_BYTES: usize = LOW + 128;
    const SCALE_BYTES: usize = k_scales::BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        std::array::from_fn(|i| {
            let low = word(block, LOW + run / 2 * 32 + 4 * i) >> (run % 2 * 4) & 0x0f0f_0f0f;
            let high = word(block, k_scales::FILE_BYTES + 4 * i) >> run & 0x0101_0101;
            low | high << 4
        })
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        k_scales::pack(block, row, scales);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let (factor, minimum) = k_scales::of_run(scales, row, run);
        quants.map(|q| factor * f32::from(q) - minimum)
    }

    type Head<S: Simd> = [S::Floats; 2];
    type Factors<S: Simd> = [S::Floats; 2];

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
        unsafe { k_scales::head::<S>(scales) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(
        head: [S::Floats; 2],
        scales: *const u8,
        run: usize,
    ) -> [S::Floats; 2] {
        unsafe { k_scales::factors::<S>(head, scales, run) }
    }

    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        [factor, minimum]: [S::Floats; 2],
        x_scale: *const f32,
        x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let total = add_scaled::<S>(total, dots[0], factor, x_scale);
            S::sub(total, S::mul(minimum, S::splat_f32(x_sums)))
        }
    }
}
