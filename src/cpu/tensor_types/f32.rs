//! F32: four little-endian bytes per element.

use super::{
    codec::all_quants,
    declaration::{Declaration, Quantize, forms},
    floats::Floats,
    kernel_order::Values,
};
use crate::simd::Simd;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 0,
    block_len: 1,
    block_bytes: 4,
    halves: &[],
    kernel_block_words: 32,
    scale_bytes: 0,
    scale_words: &[],
    has_row_factors: false,
    wgsl: forms!(["f32"] "f32"),
    i8_wgsl: None,
    repack: all_quants,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        error: 0.0,
    }),
};

fn decode(quants: &[u8], _scales: &[u8], _run: usize) -> Values {
    let elements = quants.as_chunks().0;
    std::array::from_fn(|i| f32::from_le_bytes(elements[i]))
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

pub(crate) struct Panels;

impl Floats for Panels {
    const BYTES: usize = 4;

    fn value(element: &[u8]) -> f32 {
        f32::from_le_bytes([element[0], element[1], element[2], element[3]])
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe {
            [
                S::f32s(at),
                S::f32s(at.add(32)),
                S::f32s(at.add(64)),
                S::f32s(at.add(96)),
            ]
        }
    }
}
