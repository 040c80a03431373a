//! Q2_K: blocks of 256 quants of 2 bits in groups of 16; value = d * scale * q - dmin * minimum. In the file: a byte
//! for each group with the scale low and the minimum high, quants, f16 d and dmin.

use super::{Quantized, copy_f16, f16_at, weighted, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q2K;

/// Where the quants of a block start, and d.
const QUANTS: usize = 16;
const FILE_D: usize = QUANTS + 64;
/// The scales of a unit: the bytes of each group, then f16 d, then dmin.
const D: usize = 16 * 8;

/// The factors of a run.
#[derive(Clone, Copy)]
pub(crate) struct Factors<F> {
    d: F,
    dmin: F,
    scales: [F; 2],
    minima: [F; 2],
}

impl Quantized for Q2K {
    const BITS: usize = 2;
    const RUNS: usize = 8;
    const GROUPS: usize = 2;
    const WEIGHTS: Weights = Weights::Unsigned;
    const SUMS: bool = true;
    const FILE_BYTES: usize = FILE_D + 4;
    const SCALE_BYTES: usize = D + 32;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        // Four runs share 32 bytes.
        let at = QUANTS + run / 4 * 32;
        std::array::from_fn(|i| word(block, at + 4 * i) >> (run % 4 * 2) & 0x0303_0303)
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for group in 0..16 {
            scales[8 * group + row] = block[group];
        }
        copy_f16(block, FILE_D, row, &mut scales[D..]);
        copy_f16(block, FILE_D + 2, row, &mut scales[D + 16..]);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let d = f16_at(scales, D + 2 * row);
        let dmin = f16_at(scales, D + 16 + 2 * row);
        std::array::from_fn(|column| {
            let scale = scales[8 * (2 * run + column / 16) + row];
            let q = f32::from(quants[column]);
            d * f32::from(scale & 15) * q - dmin * f32::from(scale >> 4)
        })
    }

    type Head<S: Simd> = [S::Floats; 2];
    type Factors<S: Simd> = Factors<S::Floats>;

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
        unsafe { [S::f16s(scales.add(D)), S::f16s(scales.add(D + 16))] }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(
        [d, dmin]: [S::Floats; 2],
        scales: *const u8,
        run: usize,
    ) -> Factors<S::Floats> {
        unsafe {
            let scales = scales.add(16 * run);
            let (first, second) = (S::u4s(scales), S::u4s(scales.add(8)));
            Factors {
                d,
                dmin,
                scales: [first[0], second[0]],
                minima: [first[1], second[1]],
            }
        }
    }

    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        factors: Factors<S::Floats>,
        x_scale: *const f32,
        x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let dots = [S::floats(dots[0]), S::floats(dots[1])];
            let product = S::mul(weighted::<S>(dots, factors.scales), factors.d);
            let total = S::add(total, S::mul(product, S::splat_f32(x_scale)));
            let sums = [S::splat_f32(x_sums), S::splat_f32(x_sums.add(1))];
            S::sub(
                total,
                S::mul(weighted::<S>(sums, factors.minima), factors.dmin),
            )
        }
    }
}
