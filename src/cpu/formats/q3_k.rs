//! Q3_K: blocks of 256 quants of 3 bits in groups of 16; value = d * (scale - 32) * (q - 4). In the file: third bits
//! (bit r of byte i is that of column i of run r), lower bits, 12 bytes of scales, f16 d.

use super::{Quantized, copy_f16, f16_at, weighted, word};
use crate::simd::{Simd, Weights};

pub(crate) struct Q3K;

/// Where the scales of a block start.
const SCALES: usize = 32 + 64;
/// The scales of a unit: 8 bytes with a sign for each group, then f16.
const D: usize = 16 * 8;

/// Group g's lower four bits are a nibble of byte g % 8, its upper two a part of byte 8 + g % 4.
fn file_scale(block: &[u8], group: usize) -> u8 {
    let scales = &block[SCALES..];
    let low = scales[group % 8] >> (group / 8 * 4) & 15;
    let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    low | high << 4
}

impl Quantized for Q3K {
    const BITS: usize = 3;
    const RUNS: usize = 8;
    const GROUPS: usize = 2;
    const WEIGHTS: Weights = Weights::Shifted(4);
    const FILE_BYTES: usize = SCALES + 12 + 2;
    const SCALE_BYTES: usize = D + 16;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let low = 32 + run / 4 * 32;
        std::array::from_fn(|i| {
            let low = word(block, low + 4 * i) >> (run % 4 * 2) & 0x0303_0303;
            let high = word(block, 4 * i) >> run & 0x0101_0101;
            low | high << 2
        })
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for group in 0..16 {
            scales[8 * group + row] = file_scale(block, group).wrapping_sub(32);
        }
        copy_f16(block, SCALES + 12, row, &mut scales[D..]);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let d = f16_at(scales, D + 2 * row);
        std::array::from_fn(|column| {
            let scale = scales[8 * (2 * run + column / 16) + row] as i8;
            d * f32::from(scale) * (f32::from(quants[column]) - 4.0)
        })
    }

    type Head<S: Simd> = S::Floats;
    /// d, and the scales of two groups.
    type Factors<S: Simd> = (S::Floats, [S::Floats; 2]);

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::f16s(scales.add(D)) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(
        d: S::Floats,
        scales: *const u8,
        run: usize,
    ) -> (S::Floats, [S::Floats; 2]) {
        unsafe {
            let scales = scales.add(16 * run);
            (d, [S::i8s(scales), S::i8s(scales.add(8))])
        }
    }

    /// The sum of both groups is an integer below 2^24, thus exact.
    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        (d, scales): (S::Floats, [S::Floats; 2]),
        x_scale: *const f32,
        _x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let dots = [S::floats(dots[0]), S::floats(dots[1])];
            let product = S::mul(weighted::<S>(dots, scales), d);
            S::add(total, S::mul(product, S::splat_f32(x_scale)))
        }
    }
}
