//! Q2_K: super-blocks of 256 elements in groups of 16, value = d * scale * q - dmin * minimum with f16
//! d and dmin, 4-bit scales and minima per group and 2-bit quants q. Knows no other type.

use super::{Codec, f16_at, order};

/// Elements per block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// A byte per group with the scale low and the minimum high; quants; f16 d and dmin.
const QUANTS: usize = LEN / GROUP;
const D: usize = QUANTS + LEN / 4;
const BYTES: usize = D + 4;

pub(super) const CODEC: Codec = Codec {
    name: "Q2_K",
    gguf_id: 10,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: LEN / 4,
    scales_bytes: QUANTS + 4,
    dequantize,
    quantize: None,
    split_blocks,
};

/// Each half of a block has 32 bytes, which four runs of 32 elements share.
fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    block[QUANTS + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3
}

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let (d, dmin) = (f16_at(block, D), f16_at(block, D + 2));
        for (i, value) in values.iter_mut().enumerate() {
            let scale = block[i / GROUP];
            let factor = d * f32::from(scale & 15);
            *value = factor * f32::from(quant(block, i)) - dmin * f32::from(scale >> 4);
        }
    }
}

fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(order::LEN) {
            order::push_pairs(quants, |i| quant(block, first + i));
        }
        scales.extend_from_slice(&block[..QUANTS]);
        scales.extend_from_slice(&block[D..]);
    }
}
