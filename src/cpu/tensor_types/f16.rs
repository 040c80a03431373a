//! F16: IEEE half precision, little-endian; rounds to nearest, ties to even.

use super::{
    codec::{all_quants, f16_at, push_f16},
    declaration::{Declaration, Quantize, forms},
    floats::Floats,
    kernel_order::Values,
};
use crate::simd::Simd;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 1,
    block_len: 1,
    block_bytes: 2,
    halves: &[0],
    kernel_block_words: 16,
    scale_bytes: 0,
    scale_words: &[],
    has_row_factors: false,
    wgsl: forms!(["halves"] "f16"),
    i8_wgsl: None,
    repack: all_quants,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        error: 1.0 / 2048.0,
    }),
};

fn decode(quants: &[u8], _scales: &[u8], _run: usize) -> Values {
    std::array::from_fn(|i| f16_at(quants, 2 * i))
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for value in values {
        push_f16(out, *value);
    }
}

pub(crate) struct Panels;

impl Floats for Panels {
    const BYTES: usize = 2;

    fn value(element: &[u8]) -> f32 {
        f16_at(element, 0)
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe { S::f16_columns(at) }
    }
}
