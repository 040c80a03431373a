//! Q6_K: super-blocks of 256 elements in 16 groups, value = d * scale * (q - 32) with an f16 d, an
//! i8 scale per group and 6-bit quants q.

use super::{
    codec::{f16_at, signed_extreme},
    declaration::{Declaration, Quantize, ScaleWord, forms},
    group_scales::signed_scales,
    kernel_order::{BLOCK_COLS, Values, nibble, pair, push_nibbles, push_pairs},
    quantized::{Quantized, columns, word},
};
use crate::{
    half::{f16_from_f32, f16_to_f32},
    simd::{Simd, Weights},
};

/// Elements per file block.
const LEN: usize = 256;
/// Elements that share a scale.
const GROUP: usize = 16;
/// Parts of a file block: low nibbles, upper two bits, group scales; the f16 d follows.
const LOW_BYTES: usize = LEN / 2;
const HIGH_BYTES: usize = LEN / 4;
const QUANTS_BYTES: usize = LOW_BYTES + HIGH_BYTES;
const SCALES_BYTES: usize = LEN / GROUP;
const FILE_D: usize = QUANTS_BYTES + SCALES_BYTES;
const BYTES: usize = FILE_D + 2;
/// A group whose largest magnitude is below this counts as zero, as in ggml.
const EPSILON: f32 = 1e-15;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 14,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[FILE_D],
    kernel_block_words: 6,
    scale_bytes: 20,
    scale_words: &[
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::Bits,
        ScaleWord::LowerHalf,
    ],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "q6_k"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: Some(Quantize {
        encode: quantize,
        // A step of the range, which is not symmetric; group scales are rounded to 1/128 of the largest.
        error: 1.0 / 32.0 + 1.0 / 128.0,
    }),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        let runs: [_; LEN / BLOCK_COLS] = std::array::from_fn(|run| columns::<Panels>(block, run));
        for columns in runs {
            push_nibbles(quants, |i| columns[i]);
        }
        for columns in runs {
            push_pairs(quants, |i| columns[i] >> 4);
        }
        scales.extend_from_slice(&block[QUANTS_BYTES..]);
        // Padding to whole words.
        scales.extend([0; 2]);
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let d = f16_at(scales, SCALES_BYTES);
    let (low, high) = (&quants[run * 16..], &quants[LOW_BYTES + run * 8..]);
    std::array::from_fn(|i| {
        let q = nibble(low, i) | pair(high, i) << 4;
        let scale = scales[run * 2 + i / GROUP] as i8;
        d * f32::from(scale) * (f32::from(q) - 32.0)
    })
}

/// ggml's `quantize_row_q6_K_ref`: the best scale of each group, these scales in units of d, then
/// the quants for the scales as rounded.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let mut block = [0u8; BYTES];
        let groups = x.as_chunks::<GROUP>().0;
        let best: Vec<(f32, [i8; GROUP])> = groups.iter().map(best_scale).collect();
        let extreme = signed_extreme(best.iter().map(|&(scale, _)| scale));
        if extreme.abs() >= EPSILON {
            let inverse = -128.0 / extreme;
            let d = f16_from_f32(1.0 / inverse);
            block[FILE_D..].copy_from_slice(&d.to_le_bytes());
            for (g, &(scale, quants)) in best.iter().enumerate() {
                let scale = nearest(inverse * scale).min(127) as i8;
                block[QUANTS_BYTES + g] = scale as u8;
                let step = f16_to_f32(d) * f32::from(scale);
                for (j, &q) in quants.iter().enumerate() {
                    // A group without a scale keeps the quants of the search.
                    let q = if step == 0.0 {
                        q
                    } else {
                        nearest(groups[g][j] / step).clamp(-32, 31) as i8
                    };
                    let q = (q + 32) as u8;
                    let (low, low_shift, high, high_shift) = bits_at(g * GROUP + j);
                    block[low] |= (q & 0xF) << low_shift;
                    block[high] |= (q >> 4) << high_shift;
                }
            }
        }
        out.extend_from_slice(&block);
    }
}

/// The place of the six bits of element `i` in the file: (byte of the low nibbles, its shift, byte of the upper
/// bits, its shift). Each half of a block has 64 low and 32 high bytes; within it, four runs of 32
/// elements share the high bytes, and the last two runs are the upper nibbles of the first two.
fn bits_at(i: usize) -> (usize, usize, usize, usize) {
    let (half, within) = (i / 128, i % 128);
    let run = within / 32;
    let low = half * 64 + within % 64;
    let high = half * 32 + within % 32;
    (low, run / 2 * 4, LOW_BYTES + high, run * 2)
}

/// ggml's `make_qx_quants` for 6 bits. Of 19 scales near extreme / -32 it chooses the one with the best
/// least-squares fit, weighted by x². Returns the fitted scale and its quants in -32..32.
fn best_scale(x: &[f32; GROUP]) -> (f32, [i8; GROUP]) {
    let extreme = signed_extreme(*x);
    if extreme.abs() < EPSILON {
        // The stored quants are 0, so q - 32 is -32.
        return (0.0, [-32; GROUP]);
    }
    let quantized = |inverse: f32| x.map(|x| nearest(inverse * x).clamp(-32, 31) as i8);
    let fit = |quants: &[i8; GROUP]| {
        let (mut xq, mut qq) = (0.0f32, 0.0f32);
        for (&x, &q) in x.iter().zip(quants) {
            let (weight, q) = (x * x, f32::from(q));
            xq += weight * x * q;
            qq += weight * q * q;
        }
        (xq, qq)
    };
    let mut quants = quantized(-32.0 / extreme);
    let (xq, qq) = fit(&quants);
    let mut scale = if qq == 0.0 { 0.0 } else { xq / qq };
    let mut explained = scale * xq;
    for tenths in (-9i8..=9).filter(|&tenths| tenths != 0) {
        let candidate = quantized(-(32.0 + 0.1 * f32::from(tenths)) / extreme);
        let (xq, qq) = fit(&candidate);
        if qq > 0.0 && xq * xq > explained * qq {
            quants = candidate;
            scale = xq / qq;
            explained = scale * xq;
        }
    }
    (scale, quants)
}

/// Rounds to nearest, ties to even.
fn nearest(x: f32) -> i32 {
    x.round_ties_even() as i32
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 6;
    const RUNS: usize = LEN / 32;
    signed_scales!(zero: 32, d: FILE_D, scale: |block, group| block[QUANTS_BYTES + group]);
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        // Each half of a block has 64 bytes of nibbles and 32 of upper bits. Of its four runs, the last two are the
        // high nibbles of the first two.
        let (half, run) = (run / 4, run % 4);
        let low = half * 64 + run % 2 * 32;
        let high = LOW_BYTES + half * 32;
        std::array::from_fn(|i| {
            let low = word(block, low + 4 * i) >> (run / 2 * 4) & 0x0f0f_0f0f;
            let high = word(block, high + 4 * i) >> (2 * run) & 0x0303_0303;
            low | high << 4
        })
    }
}
