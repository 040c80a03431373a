//! IQ4_NL: blocks of 32 elements, value = d * TABLE\[q\] with an f16 scale d and 4-bit quants q.

use super::{
    codec::{Codec, Values, f16_at, scales_first},
    kernel_order::nibble,
};

/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + 16;

/// The values of the 16 quants of ggml's IQ4 types.
pub(super) const TABLE: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) const CODEC: Codec = Codec {
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: None,
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * f32::from(TABLE[usize::from(nibble(quants, i))]))
}
