//! IQ4_NL and IQ4_XS: quants of 4 bits that are indices of a table. IQ4_NL has blocks of 32; value =
//! d * TABLE[q]; in the file: f16 d, nibbles. IQ4_XS has blocks of 256 in runs of 32; value = d * (scale - 32) *
//! TABLE[q]; in the file: f16 d, upper two bits of the scales, their nibbles, nibbles of each run.

use super::{
    Quantized, add_scaled, block_scales::one_scale, copy_f16, f16_at, file_nibbles, planes,
};
use crate::simd::{Simd, Weights};

/// 32 quants with an f16.
pub(crate) struct Iq4Nl;
/// 256 quants, with an f16 and 8 scales.
pub(crate) struct Iq4Xs;

/// The values of the quants.
const TABLE: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

impl Quantized for Iq4Nl {
    const BITS: usize = 4;
    const RUNS: usize = 1;
    const WEIGHTS: Weights = Weights::Signed;
    one_scale!();
    const FILE_BYTES: usize = 2 + 16;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[2..])
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * f32::from(TABLE[usize::from(q)]))
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { S::table(&TABLE, planes::vector::<S>(4, run, i)) }
    }
}

/// The scales of a unit: 8 bytes with a sign for each run, then f16.
const D: usize = 8 * 8;

impl Quantized for Iq4Xs {
    const BITS: usize = 4;
    const RUNS: usize = 8;
    const WEIGHTS: Weights = Weights::Signed;
    const FILE_BYTES: usize = 2 + 2 + 4 + 128;
    const SCALE_BYTES: usize = D + 16;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        file_nibbles(&block[8 + 16 * run..])
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for run in 0..8 {
            let low = block[4 + run / 2] >> (run % 2 * 4) & 15;
            let high = block[2 + run / 4] >> (run % 4 * 2) & 3;
            scales[8 * run + row] = (low | high << 4).wrapping_sub(32);
        }
        copy_f16(block, 0, row, &mut scales[D..]);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let factor = f16_at(scales, D + 2 * row) * f32::from(scales[8 * run + row] as i8);
        quants.map(|q| factor * f32::from(TABLE[usize::from(q)]))
    }

    type Head<S: Simd> = S::Floats;
    type Factors<S: Simd> = S::Floats;

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::f16s(scales.add(D)) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(d: S::Floats, scales: *const u8, run: usize) -> S::Floats {
        unsafe { S::mul(d, S::i8s(scales.add(8 * run))) }
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { S::table(&TABLE, planes::vector::<S>(4, run, i)) }
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
