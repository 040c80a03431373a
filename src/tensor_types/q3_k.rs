//! Q3_K: super-blocks of 256 elements in groups of 16, value = d * (scale - 32) * (q - 4) with an f16
//! d, a 6-bit scale per group and 3-bit quants q.

use super::{
    codec::{Codec, Values, f16_at},
    kernel_order::{BLOCK_COLS, bit, pair, push_bits, push_pairs},
};

/// Elements per file block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// Third bits (bit r of byte i is element i of run r), lower bits as in Q2_K, 12 bytes of scales, d.
const LOW: usize = LEN / 8;
const SCALES: usize = LOW + LEN / 4;
const SCALES_BYTES: usize = 12;
const BYTES: usize = SCALES + SCALES_BYTES + 2;

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: None,
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    let low = block[LOW + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    low | (block[i % 32] >> (i / 32) & 1) << 2
}

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(BLOCK_COLS) {
            push_pairs(quants, |i| quant(block, first + i));
            push_bits(quants, |i| quant(block, first + i) >> 2);
        }
        scales.extend_from_slice(&block[SCALES..]);
        // Padding to whole words.
        scales.extend([0; 2]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let d = f16_at(scales, SCALES_BYTES);
    let quants = &quants[run * 12..];
    std::array::from_fn(|i| {
        let q = pair(quants, i) | bit(&quants[8..], i) << 2;
        // Group g's lower four bits are a nibble of byte g % 8, its upper two a part of byte 8 + g % 4.
        let group = run * 2 + i / GROUP;
        let low = scales[group % 8] >> (group / 8 * 4) & 15;
        let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        d * (f32::from(low | high << 4) - 32.0) * (f32::from(q) - 4.0)
    })
}
