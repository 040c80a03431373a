//! Q3_K: super-blocks of 256 elements in groups of 16, value = d * (scale - 32) * (q - 4) with an f16
//! d, a 6-bit scale per group and 3-bit quants q.

use super::{
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    group_scales::signed_scales,
    kernel_order::{BLOCK_COLS, Values, bit, pair, push_bits, push_pairs},
    quantized::{Quantized, columns, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// Third bits (bit r of byte i is element i of run r), lower bits as in Q2_K, 12 bytes of scales, d.
const LOW: usize = LEN / 8;
const SCALES: usize = LOW + LEN / 4;
const SCALES_BYTES: usize = 12;
const FILE_D: usize = SCALES + SCALES_BYTES;
const BYTES: usize = FILE_D + 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 11,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[FILE_D],
    kernel_block_words: 3,
    scale_bytes: 16,
    scale_words: &[
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::LowerHalf,
    ],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "q3_k"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: None,
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for run in 0..LEN / BLOCK_COLS {
            let columns = columns::<Panels>(block, run);
            push_pairs(quants, |i| columns[i]);
            push_bits(quants, |i| columns[i] >> 2);
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
        let scale = group_scale(scales, run * 2 + i / GROUP);
        d * (f32::from(scale) - 32.0) * (f32::from(q) - 4.0)
    })
}

/// Group g's lower four bits are a nibble of byte g % 8, its upper two a part of byte 8 + g % 4.
fn group_scale(scales: &[u8], group: usize) -> u8 {
    let low = scales[group % 8] >> (group / 8 * 4) & 15;
    let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    low | high << 4
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 3;
    const RUNS: usize = LEN / 32;
    signed_scales!(
        zero: 4,
        d: FILE_D,
        scale: |block, group| group_scale(&block[SCALES..], group).wrapping_sub(32)
    );
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let low = LOW + run / 4 * 32;
        std::array::from_fn(|i| {
            let low = word(block, low + 4 * i) >> (run % 4 * 2) & 0x0303_0303;
            let high = word(block, 4 * i) >> run & 0x0101_0101;
            low | high << 2
        })
    }
}
