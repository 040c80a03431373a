//! Q5_1: blocks of 32 elements, value = d * q + m with an f16 scale d, an f16 minimum m and 5-bit
//! quants q. Knows no other type.

use super::{Codec, extremes, f16_at, order};
use half::f16;

/// Elements per block.
const LEN: usize = 32;
/// f16 d and m, a word whose bit i is the fifth bit of element i, nibbles as in Q4_0.
const BYTES: usize = 4 + 4 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_1",
    gguf_id: 7,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 8,
    dequantize,
    quantize: Some(quantize),
    split_blocks,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let (d, m) = (f16_at(block, 0), f16_at(block, 2));
        for (i, value) in values.iter_mut().enumerate() {
            let high = block[4 + i / 8] >> (i % 8) & 1;
            let q = block[8 + i % 16] >> (i / 16 * 4) & 15 | high << 4;
            *value = d * f32::from(q) + m;
        }
    }
}

fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        quants.extend_from_slice(&block[8..]);
        order::push_bits(scales, |i| block[4 + i / 8] >> (i % 8));
        scales.extend_from_slice(&block[..4]);
    }
}

/// ggml's `quantize_row_q5_1_ref`: d = (max - min) / 31, q = (x - min) / d + 0.5 cut to an integer.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (min, max) = extremes(x);
        let d = (max - min) / 31.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(f16::from_f32(min).to_le_bytes());
        pack(out, x.map(|x| ((x - min) * inverse + 0.5) as u8));
    }
}

/// Quants of five bits as the file has them: fifth bits, then nibbles.
pub(super) fn pack(out: &mut Vec<u8>, q: [u8; LEN]) {
    let high = (0..LEN).fold(0u32, |bits, i| bits | u32::from(q[i] >> 4 & 1) << i);
    out.extend(high.to_le_bytes());
    order::push_nibbles(out, |i| q[i]);
}
