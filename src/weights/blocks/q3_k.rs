//! Q3_K: super-blocks of 256 elements in groups of 16, value = d * (scale - 32) * (q - 4) with an f16
//! d, a 6-bit scale per group and 3-bit quants q. Knows no other type.

use super::{Codec, f16_at, order};

/// Elements per block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// Third bits (bit r of byte i is element i of run r), lower bits as in Q2_K, 12 bytes of scales, d.
const LOW: usize = LEN / 8;
const SCALES: usize = LOW + LEN / 4;
const D: usize = SCALES + 12;
const BYTES: usize = D + 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q3_K",
    gguf_id: 11,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: LEN / 4 + LEN / 8,
    scales_bytes: 16,
    dequantize,
    quantize: None,
    split_blocks,
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    let low = block[LOW + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    low | (block[i % 32] >> (i / 32) & 1) << 2
}

/// Group g's lower four bits are a nibble of byte g % 8, its upper two a part of byte 8 + g % 4.
fn scale(block: &[u8; BYTES], group: usize) -> f32 {
    let low = block[SCALES + group % 8] >> (group / 8 * 4) & 15;
    let high = block[SCALES + 8 + group % 4] >> (group / 4 * 2) & 3;
    f32::from((low | high << 4) as i8 - 32)
}

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16_at(block, D);
        for (i, value) in values.iter_mut().enumerate() {
            let q = f32::from(quant(block, i) as i8 - 4);
            *value = d * scale(block, i / GROUP) * q;
        }
    }
}

fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(order::LEN) {
            order::push_pairs(quants, |i| quant(block, first + i));
            order::push_bits(quants, |i| quant(block, first + i) >> 2);
        }
        scales.extend_from_slice(&block[SCALES..]);
        scales.extend([0; 2]);
    }
}
