//! MXFP4: blocks of 32 floats of 4 bits; value = 2^(e - 127) * E2M1(q). In the file: the byte e, nibbles.

use super::{Quantized, add_scaled, file_nibbles, planes};
use crate::simd::{Simd, Weights, half_exponent};

pub(crate) struct Mxfp4;

/// Twice the values of the floats, plus 12, so that none is negative. As in ggml, there is no negative zero.
const DOUBLED: [i8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];

impl Quantized for Mxfp4 {
    const BITS: usize = 4;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Shifted(12);
    const GREATEST: usize = 24;
    const FILE_BYTES: usize = 1 + 16;
    const SCALE_BYTES: usize = 8;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[1..])
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        scales[row] = block[0];
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let half = half_exponent(scales[row]);
        quants.map(|q| half * f32::from(DOUBLED[usize::from(q)] - 12))
    }

    type Head<S: Simd> = S::Floats;
    type Factors<S: Simd> = S::Floats;

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::exponents(scales) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(head: S::Floats, _scales: *const u8, _run: usize) -> S::Floats {
        head
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { S::table(&DOUBLED, planes::vector::<S>(4, run, i)) }
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
