//! Q4_K: super-blocks of 256 elements in runs of 32, value = d * scale * q - dmin * minimum with f16 d
//! and dmin, 6-bit scales and minima per run and 4-bit quants q.

use super::{
    declaration::{Declaration, Quantize, ScaleWord, forms},
    k_scales::{self, Search, scales_and_minima},
    kernel_order::{Values, nibble, push_nibbles},
    quantized::{Quantized, repack_runs, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// Scales, then 32 bytes for each two runs: the first run in the low nibbles.
const LOW: usize = k_scales::FILE_BYTES;
const BYTES: usize = LOW + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 12,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0, 2],
    kernel_block_words: 4,
    scale_bytes: 16,
    scale_words: &[
        ScaleWord::Halves,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
    ],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/nibbles", "parts/k_scales", "q4_k"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // A step of a range of twice the extreme; scales and minima are rounded to 1/63 of the largest.
        error: 2.0 / 15.0 + 1.0 / 63.0,
    }),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    repack_runs::<Panels>(bytes, quants, scales, 0..LOW, |quants, columns| {
        push_nibbles(quants, |i| columns[i]);
    });
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (factor, minimum) = k_scales::file_factors(scales, run);
    let quants = &quants[run * 16..];
    std::array::from_fn(|i| factor * f32::from(nibble(quants, i)) - minimum)
}

/// The search of ggml's `quantize_row_q4_K_ref`.
const SEARCH: Search = Search {
    greatest: 15,
    first: -1.0,
    steps: 20,
};

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (scales, quants) = k_scales::quantize(x, &SEARCH);
        out.extend(scales);
        k_scales::push_run_nibbles(out, &quants);
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Unsigned;
    scales_and_minima!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let low = LOW + run / 2 * 32;
        std::array::from_fn(|i| word(block, low + 4 * i) >> (run % 2 * 4) & 0x0f0f_0f0f)
    }
}
