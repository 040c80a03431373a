//! Q5_K: super-blocks of 256 elements in runs of 32, value = d * scale * q - dmin * minimum with f16 d
//! and dmin, 6-bit scales and minima per run and 5-bit quants q. Knows no other type.

use super::{
    Codec,
    k_scales::{self, Search},
    order,
};

/// Elements per block.
const LEN: usize = 256;
/// Where the parts start: scales, fifth bits (bit r of byte i is element i of run r), then nibbles, 32
/// bytes for each two runs, the first run low.
const HIGH: usize = k_scales::BYTES;
const LOW: usize = HIGH + LEN / 8;
const BYTES: usize = LOW + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_K",
    gguf_id: 13,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: LEN / 2 + LEN / 8,
    scales_bytes: k_scales::BYTES,
    dequantize,
    quantize: Some(quantize),
    split_blocks,
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    let low = block[LOW + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    low | (block[HIGH + i % 32] >> (i / 32) & 1) << 4
}

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let scales = k_scales::of(block);
        for (i, value) in values.iter_mut().enumerate() {
            let (factor, minimum) = scales[i / 32];
            *value = factor * f32::from(quant(block, i)) - minimum;
        }
    }
}

fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(order::LEN) {
            order::push_nibbles(quants, |i| quant(block, first + i));
        }
        for first in (0..LEN).step_by(order::LEN) {
            order::push_bits(quants, |i| quant(block, first + i) >> 4);
        }
        scales.extend_from_slice(&block[..k_scales::BYTES]);
    }
}

/// As ggml's `quantize_row_q5_K_ref` searches.
const SEARCH: Search = Search {
    greatest: 31,
    first: -0.5,
    steps: 15,
};

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (scales, quants) = k_scales::quantize(x, &SEARCH);
        out.extend(scales);
        for i in 0..32 {
            out.push((0..8).fold(0, |bits, run| bits | quants[run * 32 + i] >> 4 << run));
        }
        for runs in quants.chunks_exact(64) {
            let (low, high) = runs.split_at(32);
            out.extend(low.iter().zip(high).map(|(low, high)| low & 15 | high << 4));
        }
    }
}
