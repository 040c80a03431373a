//! Q2_0: blocks of 64 elements, value = d * (q - 1) with an f16 scale d and 2-bit quants q.

use super::{
    block_scales::one_scale,
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{BLOCK_COLS, Values, pair, push_pairs},
    quantized::{Quantized, repack_runs},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 64;
/// f16 scale, then byte j with elements 4 * j to 4 * j + 3, the first lowest.
const BYTES: usize = 2 + LEN / 4;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 42,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 2,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "parts/ternary", "q2_0"),
    i8_wgsl: None,
    repack: repack::<Panels, 0>,
    decode,
    quantize: None,
};

/// `Declaration::repack` of Q2_0 and the TQ types, whose file block has d at byte `D`.
pub(super) fn repack<Q: Quantized, const D: usize>(
    bytes: &[u8],
    quants: &mut Vec<u8>,
    scales: &mut Vec<u8>,
) {
    repack_runs::<Q>(bytes, quants, scales, D..D + 2, |quants, columns| {
        push_pairs(quants, |i| columns[i]);
    });
}

/// `Declaration::decode` of Q2_0 and the TQ types.
pub(super) fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let d = f16_at(scales, 0);
    let quants = &quants[run * BLOCK_COLS / 4..];
    std::array::from_fn(|i| d * (f32::from(pair(quants, i)) - 1.0))
}

/// `Quantized::values` of Q2_0 and the TQ types.
pub(super) fn values(quants: [u8; 32], scales: &[u8], row: usize) -> [f32; 32] {
    let d = f16_at(scales, 2 * row);
    quants.map(|q| d * (f32::from(q) - 1.0))
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 2;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(1);
    one_scale!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        std::array::from_fn(|i| {
            let four = u32::from(block[2 + 8 * run + i]);
            (four | four << 6 | four << 12 | four << 18) & 0x0303_0303
        })
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        values(quants, scales, row)
    }
}
