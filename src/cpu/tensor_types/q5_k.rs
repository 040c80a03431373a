//! Q5_K: super-blocks of 256 elements in runs of 32, value = d * scale * q - dmin * minimum with f16 d
//! and dmin, 6-bit scales and minima per run and 5-bit quants q.

use super::{
    declaration::{Declaration, Quantize, ScaleWord, forms},
    k_scales::{self, Search, scales_and_minima},
    kernel_order::{BLOCK_COLS, Values, five_bits, push_bits, push_nibbles},
    quantized::{Quantized, columns, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// The starts of the parts: scales, fifth bits (bit r of byte i is element i of run r), then nibbles, 32
/// bytes for each two runs, the first run low.
const HIGH: usize = k_scales::FILE_BYTES;
const LOW: usize = HIGH + LEN / 8;
const BYTES: usize = LOW + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 13,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0, 2],
    kernel_block_words: 5,
    scale_bytes: 16,
    scale_words: &[
        ScaleWord::Halves,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
    ],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/fives", "parts/k_scales", "q5_k"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // A step of a range of twice the extreme; scales and minima are rounded to 1/63 of the largest.
        error: 2.0 / 31.0 + 1.0 / 63.0,
    }),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        let runs: [_; LEN / BLOCK_COLS] = std::array::from_fn(|run| columns::<Panels>(block, run));
        for columns in runs {
            push_nibbles(quants, |i| columns[i]);
        }
        for columns in runs {
            push_bits(quants, |i| columns[i] >> 4);
        }
        scales.extend_from_slice(&block[..HIGH]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (factor, minimum) = k_scales::file_factors(scales, run);
    let (low, high) = (&quants[run * 16..], &quants[LEN / 2 + run * 4..]);
    std::array::from_fn(|i| factor * f32::from(five_bits(low, high, i)) - minimum)
}

/// The search of ggml's `quantize_row_q5_K_ref`.
const SEARCH: Search = Search {
    greatest: 31,
    first: -0.5,
    steps: 15,
};

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (scales, quants) = k_scales::quantize(x, &SEARCH);
        out.extend(scales);
        for i in 0..32 {
            out.push((0..8).fold(0, |bits, run| bits | quants[run * 32 + i] >> 4 << run));
        }
        k_scales::push_run_nibbles(out, &quants);
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 5;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Unsigned;
    scales_and_minima!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        std::array::from_fn(|i| {
            let low = word(block, LOW + run / 2 * 32 + 4 * i) >> (run % 2 * 4) & 0x0f0f_0f0f;
            let high = word(block, HIGH + 4 * i) >> run & 0x0101_0101;
            low | high << 4
        })
    }
}
