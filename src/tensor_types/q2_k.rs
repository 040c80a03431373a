//! Q2_K: super-blocks of 256 elements in groups of 16, value = d * scale * q - dmin * minimum with f16
//! d and dmin, 4-bit scales and minima per group and 2-bit quants q.

use super::{
    codec::{Codec, Values, f16_at},
    kernel_order::{BLOCK_COLS, pair, push_pairs},
};

/// Elements per file block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// A byte per group with the scale low and the minimum high; quants; f16 d and dmin.
const QUANTS: usize = LEN / GROUP;
const D: usize = QUANTS + LEN / 4;
const BYTES: usize = D + 4;

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: None,
};

/// Each half of a file block has 32 bytes, which four runs of 32 elements share.
fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    block[QUANTS + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3
}

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(BLOCK_COLS) {
            push_pairs(quants, |i| quant(block, first + i));
        }
        scales.extend_from_slice(&block[..QUANTS]);
        scales.extend_from_slice(&block[D..]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (d, dmin) = (f16_at(scales, QUANTS), f16_at(scales, QUANTS + 2));
    std::array::from_fn(|i| {
        let scale = scales[run * 2 + i / GROUP];
        let q = f32::from(pair(&quants[run * 8..], i));
        d * f32::from(scale & 15) * q - dmin * f32::from(scale >> 4)
    })
}
