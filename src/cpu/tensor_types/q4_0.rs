//! Q4_0: blocks of 32 elements, value = d * (q - 8) with an f16 scale d and 4-bit quants q.

use super::{
    block_scales::one_scale,
    codec::{f16_at, inverse_or_zero, push_f16, scales_first, signed_extreme},
    declaration::{Declaration, Quantize, ScaleWord, forms, weights_wgsl},
    kernel_order::{Values, nibble, push_nibbles},
    quantized::{Quantized, file_nibbles},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 2,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 4,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/nibbles", "q4_0"),
    i8_wgsl: Some(weights_wgsl!("i8/q4_0")),
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // A step, because the far end of the range is not symmetric.
        error: 1.0 / 8.0 + 1.0 / 1024.0,
    }),
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * (f32::from(nibble(quants, i)) - 8.0))
}

/// ggml's `quantize_row_q4_0_ref`: d = (the value of largest magnitude, with its sign) / -8, so
/// that it becomes q = 0; q = x / d + 8.5 cut to an integer, at most 15.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let d = signed_extreme(*x) / -8.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        push_nibbles(out, |i| ((x[i] * inverse + 8.5) as u8).min(15));
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(8);
    one_scale!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[2..])
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * (f32::from(q) - 8.0))
    }
}
