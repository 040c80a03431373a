//! Q5_0: blocks of 32 elements, value = d * (q - 16) with an f16 scale d and 5-bit quants q.

use super::{
    block_scales::one_scale,
    codec::{f16_at, inverse_or_zero, push_f16, signed_extreme},
    declaration::{Declaration, Quantize, ScaleWord, forms},
    kernel_order::{Values, five_bits, push_bits},
    q5_1::pack,
    quantized::{Quantized, file_bits, file_nibbles, join, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, a word whose bit i is the fifth bit of element i, nibbles as in Q4_0.
const BYTES: usize = 2 + 4 + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 6,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 4,
    scale_bytes: 6,
    scale_words: &[ScaleWord::Bits, ScaleWord::LowerHalf, ScaleWord::UpperHalf],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/fives", "q5_0"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // A step, as for Q4_0.
        error: 1.0 / 16.0 + 1.0 / 1024.0,
    }),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        quants.extend_from_slice(&block[6..]);
        push_bits(scales, |i| block[2 + i / 8] >> (i % 8));
        scales.extend_from_slice(&block[..2]);
    }
}

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 4);
    std::array::from_fn(|i| d * (f32::from(five_bits(quants, scales, i)) - 16.0))
}

/// ggml's `quantize_row_q5_0_ref`: as Q4_0 with d = extreme / -16.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let d = signed_extreme(*x) / -16.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        pack(out, x.map(|x| ((x * inverse + 16.5) as u8).min(31)));
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 5;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(16);
    one_scale!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        join(file_nibbles(&block[6..]), file_bits(word(block, 2)), 4)
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * (f32::from(q) - 16.0))
    }
}
