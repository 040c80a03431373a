//! Q5_1: blocks of 32 elements, value = d * q + m with an f16 scale d, an f16 minimum m and 5-bit
//! quants q.

use super::{
    block_scales::scale_and_minimum,
    codec::{extremes, f16_at, inverse_or_zero, push_f16},
    declaration::{Declaration, Quantize, ScaleWord, forms},
    kernel_order::{Values, five_bits, push_bits, push_nibbles},
    quantized::{Quantized, file_bits, file_nibbles, join, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 d and m, a word whose bit i is the fifth bit of element i, nibbles as in Q4_0.
const BYTES: usize = 4 + 4 + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 7,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0, 2],
    kernel_block_words: 4,
    scale_bytes: 8,
    scale_words: &[ScaleWord::Bits, ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/fives", "q5_1"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // Half a step of a range of twice the extreme; scale and minimum are rounded.
        error: 1.0 / 31.0 + 3.0 / 1024.0,
    }),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        quants.extend_from_slice(&block[8..]);
        push_bits(scales, |i| block[4 + i / 8] >> (i % 8));
        scales.extend_from_slice(&block[..4]);
    }
}

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let (d, m) = (f16_at(scales, 4), f16_at(scales, 6));
    std::array::from_fn(|i| d * f32::from(five_bits(quants, scales, i)) + m)
}

/// ggml's `quantize_row_q5_1_ref`: d = (max - min) / 31, q = (x - min) / d + 0.5 cut to an integer.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (min, max) = extremes(x);
        let d = (max - min) / 31.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        push_f16(out, min);
        pack(out, x.map(|x| ((x - min) * inverse + 0.5) as u8));
    }
}

/// 5-bit quants as in the file: fifth bits, then nibbles.
pub(super) fn pack(out: &mut Vec<u8>, q: [u8; LEN]) {
    let high = (0..LEN).fold(0u32, |bits, i| bits | u32::from(q[i] >> 4 & 1) << i);
    out.extend(high.to_le_bytes());
    push_nibbles(out, |i| q[i]);
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 5;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Unsigned;
    scale_and_minimum!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        join(file_nibbles(&block[8..]), file_bits(word(block, 4)), 4)
    }
}
