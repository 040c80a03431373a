//! Q5_K: super-blocks of 256 elements in runs of 32, value = d * scale * q - dmin * minimum with f16 d
//! and dmin, 6-bit scales and minima per run and 5-bit quants q.

use super::{
    codec::{Codec, Values},
    k_scales::{self, Search},
    kernel_order::{BLOCK_COLS, five_bits, push_bits, push_nibbles},
};

/// Elements per file block.
const LEN: usize = 256;
/// Where the parts start: scales, fifth bits (bit r of byte i is element i of run r), then nibbles, 32
/// bytes for each two runs, the first run low.
const HIGH: usize = k_scales::BYTES;
const LOW: usize = HIGH + LEN / 8;
const BYTES: usize = LOW + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: Some(quantize),
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    let low = block[LOW + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    low | (block[HIGH + i % 32] >> (i / 32) & 1) << 4
}

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(BLOCK_COLS) {
            push_nibbles(quants, |i| quant(block, first + i));
        }
        for first in (0..LEN).step_by(BLOCK_COLS) {
            push_bits(quants, |i| quant(block, first + i) >> 4);
        }
        scales.extend_from_slice(&block[..k_scales::BYTES]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (factor, minimum) = k_scales::of_run(scales, run);
    let (low, high) = (&quants[run * 16..], &quants[LEN / 2 + run * 4..]);
    std::array::from_fn(|i| factor * f32::from(five_bits(low, high, i)) - minimum)
}

/// The search of ggml's `quantize_row_q5_K_ref`.
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
        k_scales::push_run_nibbles(out, &quants);
    }
}
