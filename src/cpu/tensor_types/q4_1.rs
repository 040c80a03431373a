//! Q4_1: blocks of 32 elements, value = d * q + m with an f16 scale d, an f16 minimum m and 4-bit
//! quants q.

use super::{
    block_scales::scale_and_minimum,
    codec::{extremes, f16_at, inverse_or_zero, push_f16, scales_first},
    declaration::{Declaration, Quantize, ScaleWord, forms},
    kernel_order::{Values, nibble, push_nibbles},
    quantized::{Quantized, file_nibbles},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 d and m, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 4 + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 3,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0, 2],
    kernel_block_words: 4,
    scale_bytes: 4,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/nibbles", "q4_1"),
    i8_wgsl: None,
    repack: scales_first::<BYTES, 4>,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // Half a step of a range of twice the extreme; scale and minimum are rounded.
        error: 1.0 / 15.0 + 3.0 / 1024.0,
    }),
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let (d, m) = (f16_at(scales, 0), f16_at(scales, 2));
    std::array::from_fn(|i| d * f32::from(nibble(quants, i)) + m)
}

/// ggml's `quantize_row_q4_1_ref`: d = (max - min) / 15, q = (x - min) / d + 0.5 cut to an integer.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (min, max) = extremes(x);
        let d = (max - min) / 15.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        push_f16(out, min);
        push_nibbles(out, |i| (((x[i] - min) * inverse + 0.5) as u8).min(15));
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Unsigned;
    scale_and_minimum!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[4..])
    }
}
