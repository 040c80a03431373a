//! TQ2_0: super-blocks of 256 elements, value = d * (q - 1) with an f16 scale d and 2-bit quants q, of which 3 is not
//! used.

use super::{
    block_scales::one_scale,
    declaration::{Declaration, ScaleWord, forms},
    q2_0,
    quantized::{Quantized, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// For each half of the elements 32 bytes, which have an element of each of four runs, the first run lowest; f16 d.
const FILE_D: usize = LEN / 4;
const BYTES: usize = FILE_D + 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 35,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[FILE_D],
    kernel_block_words: 2,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "parts/ternary", "tq2_0"),
    i8_wgsl: None,
    repack: q2_0::repack::<Panels, FILE_D>,
    decode: q2_0::decode,
    quantize: None,
};

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 2;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(1);
    one_scale!(FILE_D);
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let at = run / 4 * 32;
        std::array::from_fn(|i| word(block, at + 4 * i) >> (run % 4 * 2) & 0x0303_0303)
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        q2_0::values(quants, scales, row)
    }
}
