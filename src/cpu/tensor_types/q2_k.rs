//! Q2_K: super-blocks of 256 elements in groups of 16, value = d * scale * q - dmin * minimum with f16
//! d and dmin, 4-bit scales and minima per group and 2-bit quants q.

use super::{
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{BLOCK_COLS, Values, pair, push_pairs},
    quantized::{Quantized, columns, copy_f16, weighted, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// A byte per group with the scale low and the minimum high; quants; f16 d and dmin.
const QUANTS: usize = LEN / GROUP;
const FILE_D: usize = QUANTS + LEN / 4;
const BYTES: usize = FILE_D + 4;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 10,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[FILE_D, FILE_D + 2],
    kernel_block_words: 2,
    scale_bytes: 20,
    scale_words: &[
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Halves,
    ],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "q2_k"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: None,
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for run in 0..LEN / BLOCK_COLS {
            let columns = columns::<Panels>(block, run);
            push_pairs(quants, |i| columns[i]);
        }
        scales.extend_from_slice(&block[..QUANTS]);
        scales.extend_from_slice(&block[FILE_D..]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (d, dmin) = (f16_at(scales, QUANTS), f16_at(scales, QUANTS + 2));
    std::array::from_fn(|i| {
        let scale = scales[run * 2 + i / GROUP];
        let q = f32::from(pair(&quants[run * 8..], i));
        d * f32::from(scale & 15) * q - dmin * f32::from(scale >> 4)
    })
}

pub(crate) struct Panels;

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

impl Quantized for Panels {
    const BITS: usize = 2;
    const RUNS: usize = LEN / 32;
    const GROUPS: usize = 2;
    const WEIGHTS: Weights = Weights::Unsigned;
    const SUMS: bool = true;
    const FILE_BYTES: usize = BYTES;
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
