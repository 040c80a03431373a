//! Q1_0: blocks of 128 elements, value = d or -d with an f16 d and a bit for each element.

use super::{
    block_scales::one_scale,
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{Values, bit, push_bits},
    planes,
    quantized::{Quantized, file_bits, repack_runs, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 128;
/// f16 scale, then bit j % 8 of byte j / 8 for element j: 1 for d, 0 for -d.
const BYTES: usize = 2 + LEN / 8;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 41,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[0],
    kernel_block_words: 1,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "q1_0"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: None,
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    repack_runs::<Panels>(bytes, quants, scales, 0..2, |quants, columns| {
        push_bits(quants, |i| columns[i]);
    });
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| signed(d, bit(&quants[4 * run..], i)))
}

fn signed(d: f32, bit: u8) -> f32 {
    if bit == 1 { d } else { -d }
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 1;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(1);
    const GREATEST: usize = 2;
    one_scale!();
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        file_bits(word(block, 2 + 4 * run))
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let d = f16_at(scales, 2 * row);
        quants.map(|q| signed(d, q))
    }

    /// Twice the bits.
    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { planes::bit::<S>(run, i, 1) }
    }
}
