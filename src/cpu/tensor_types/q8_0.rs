//! Q8_0: blocks of 32 elements, value = d * q with an f16 scale d and i8 quants q.

use super::{
    block_scales::one_scale,
    codec::{f16_at, inverse_or_zero, push_f16, scales_first},
    declaration::{Declaration, Quantize, ScaleWord, forms, weights_wgsl},
    kernel_order::Values,
    quantized::{Quantized, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, then one i8 per element.
const BYTES: usize = 2 + LEN;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 8,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 8,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["q8_0"] "q8_0"),
    i8_wgsl: Some(weights_wgsl!("i8/q8_0")),
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // Half a step; the scale is rounded to f16.
        error: 0.5 / 127.0 + 1.0 / 1024.0,
    }),
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * f32::from(quants[i] as i8))
}

/// ggml's `quantize_row_q8_0_ref`: d = max |x| / 127, q = x / d rounded half away from zero. q is
/// computed with the unrounded d; d is stored as f16.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let amax = x.iter().fold(0.0, |amax: f32, x| amax.max(x.abs()));
        let d = amax / 127.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        out.extend(x.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 8;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Signed;
    one_scale!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        std::array::from_fn(|i| word(block, 2 + 4 * i))
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| d * f32::from(q as i8))
    }
}
