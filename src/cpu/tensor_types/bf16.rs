//! BF16: the upper half of an f32, little-endian; rounds to nearest, ties to even.

use super::{
    codec::all_quants,
    declaration::{Declaration, Quantize, forms},
    floats::Floats,
    kernel_order::Values,
};
use crate::{
    half::{bf16_from_f32, bf16_to_f32},
    simd::Simd,
};

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 30,
    block_len: 1,
    block_bytes: 2,
    halves: &[],
    kernel_block_words: 16,
    scale_bytes: 0,
    scale_words: &[],
    has_row_factors: false,
    wgsl: forms!(["halves"] "bf16"),
    i8_wgsl: None,
    repack: all_quants,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        error: 1.0 / 256.0,
    }),
};

fn decode(quants: &[u8], _scales: &[u8], _run: usize) -> Values {
    std::array::from_fn(|i| Panels::value(&quants[2 * i..]))
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    let bytes = |&value: &f32| bf16_from_f32(value).to_le_bytes();
    out.extend(values.iter().flat_map(bytes));
}

pub(crate) struct Panels;

impl Floats for Panels {
    const BYTES: usize = 2;

    fn value(element: &[u8]) -> f32 {
        bf16_to_f32(u16::from_le_bytes([element[0], element[1]]))
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe {
            [
                S::bf16s(at),
                S::bf16s(at.add(16)),
                S::bf16s(at.add(32)),
                S::bf16s(at.add(48)),
            ]
        }
    }
}
