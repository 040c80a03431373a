//! IQ4_NL: blocks of 32 elements, value = d * TABLE[q] with an f16 scale d and 4-bit quants q.

use super::{
    block_scales::one_scale,
    codec::{f16_at, scales_first},
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{Values, nibble},
    planes,
    quantized::{Quantized, file_nibbles},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + LEN / 2;

/// The values of the 16 quants of ggml's IQ4 types.
pub(super) const TABLE: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 20,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 4,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/iq4", "iq4_nl"),
    i8_wgsl: None,
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: None,
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * f32::from(TABLE[usize::from(nibble(quants, i))]))
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Signed;
    one_scale!();
    const FILE_BYTES: usize = BYTES;

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
