//! IQ4_NL: blocks of 32 elements, value = d * TABLE(q) with an f16 scale d and 4-bit quants q. Knows no
//! other type.

use super::{Codec, f16_at, scales_first};

/// Elements per block.
const LEN: usize = 32;
/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + LEN / 2;

/// The values that quants of ggml's IQ4 types stand for.
pub(super) const TABLE: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

pub(super) const CODEC: Codec = Codec {
    name: "IQ4_NL",
    gguf_id: 20,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 2,
    dequantize,
    quantize: None,
    split_blocks: scales_first::<BYTES, 2>,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16_at(block, 0);
        for (i, value) in values.iter_mut().enumerate() {
            let q = block[2 + i % 16] >> (i / 16 * 4) & 15;
            *value = d * f32::from(TABLE[usize::from(q)]);
        }
    }
}
