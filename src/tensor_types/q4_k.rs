//! Q4_K: super-blocks of 256 elements in runs of 32, value = d * scale * q - dmin * minimum with f16 d
//! and dmin, 6-bit scales and minima per run and 4-bit quants q.

use super::{
    codec::{Codec, Values},
    k_scales::{self, Search},
    kernel_order::{BLOCK_COLS, nibble, push_nibbles},
};

/// Elements per file block.
const LEN: usize = 256;
/// Scales, then 32 bytes for each two runs: the first run in the low nibbles.
const BYTES: usize = k_scales::BYTES + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: Some(quantize),
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    block[k_scales::BYTES + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15
}

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for first in (0..LEN).step_by(BLOCK_COLS) {
            push_nibbles(quants, |i| quant(block, first + i));
        }
        scales.extend_from_slice(&block[..k_scales::BYTES]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let (factor, minimum) = k_scales::of_run(scales, run);
    let quants = &quants[run * 16..];
    std::array::from_fn(|i| factor * f32::from(nibble(quants, i)) - minimum)
}

/// The search of ggml's `quantize_row_q4_K_ref`.
const SEARCH: Search = Search {
    greatest: 15,
    first: -1.0,
    steps: 20,
};

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (scales, quants) = k_scales::quantize(x, &SEARCH);
        out.extend(scales);
        k_scales::push_run_nibbles(out, &quants);
    }
}
