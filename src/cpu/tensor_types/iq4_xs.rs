//! IQ4_XS: super-blocks of 256 elements in runs of 32, value = d * (scale - 32) * TABLE[q] with an f16
//! d, a 6-bit scale per run, 4-bit quants q and the table of IQ4_NL.

use super::{
    block_scales::one_factor,
    codec::{f16_at, scales_first},
    declaration::{Declaration, ScaleWord, forms},
    iq4_nl::TABLE,
    kernel_order::{Values, nibble},
    planes,
    quantized::{Quantized, copy_f16, file_nibbles},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// f16 d, upper two bits of the scales, their nibbles; per run, 16 bytes as in IQ4_NL.
const QUANTS: usize = 2 + 2 + 4;
const BYTES: usize = QUANTS + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 23,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 4,
    scale_bytes: 8,
    scale_words: &[ScaleWord::LowerHalf, ScaleWord::Bits],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/iq4", "iq4_xs"),
    i8_wgsl: None,
    repack: scales_first::<BYTES, QUANTS>,
    decode,
    quantize: None,
};

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let factor = f16_at(scales, 0) * (f32::from(run_scale(scales, run)) - 32.0);
    let quants = &quants[run * 16..];
    std::array::from_fn(|i| factor * f32::from(TABLE[usize::from(nibble(quants, i))]))
}

/// The six bits of a run's scale.
fn run_scale(scales: &[u8], run: usize) -> u8 {
    let low = scales[4 + run / 2] >> (run % 2 * 4) & 15;
    let high = scales[2 + run / 4] >> (run % 4 * 2) & 3;
    low | high << 4
}

pub(crate) struct Panels;

/// The scales of a unit: 8 bytes with a sign for each run, then f16.
const D: usize = 8 * 8;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Signed;
    const FILE_BYTES: usize = BYTES;
    const SCALE_BYTES: usize = D + 16;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        file_nibbles(&block[QUANTS + 16 * run..])
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for run in 0..8 {
            scales[8 * run + row] = run_scale(block, run).wrapping_sub(32);
        }
        copy_f16(block, 0, row, &mut scales[D..]);
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let factor = f16_at(scales, D + 2 * row) * f32::from(scales[8 * run + row] as i8);
        quants.map(|q| factor * f32::from(TABLE[usize::from(q)]))
    }

    one_factor!();

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
}
