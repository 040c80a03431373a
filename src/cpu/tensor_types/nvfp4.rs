//! NVFP4: blocks of 64 elements in groups of 16, value = scale * E2M1(q) with an E4M3 scale without a sign for each group
//! and 4-bit floats q.

use super::{
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{BLOCK_COLS, Values, nibble, push_nibbles},
    mxfp4::{self, DOUBLED},
    planes,
    quantized::{Quantized, columns, weighted, word},
};
use crate::{
    half::f16_from_f32,
    simd::{Simd, Weights},
};

/// Elements per file block.
const LEN: usize = 64;
/// Elements that share a scale.
const GROUP: usize = 16;
/// A scale for each group; for each group eight bytes: byte j with element j low and element j + 8 high.
const QUANTS: usize = LEN / GROUP;
const BYTES: usize = QUANTS + LEN / 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 40,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[],
    kernel_block_words: 4,
    scale_bytes: 4,
    scale_words: &[ScaleWord::SmallFloats],
    has_row_factors: true,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/e2m1", "nvfp4"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: None,
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        for run in 0..LEN / BLOCK_COLS {
            let columns = columns::<Panels>(block, run);
            push_nibbles(quants, |i| mxfp4::place(columns[i]));
        }
        scales.extend(block[..QUANTS].iter().map(|&scale| kernel_scale(scale)));
    }
}

/// A scale as kernels read it. ggml reads the NaN without a sign as zero, and ignores signs otherwise.
fn kernel_scale(scale: u8) -> u8 {
    match scale {
        127 => 0,
        _ => scale & 127,
    }
}

/// Half the value of a scale of [`kernel_scale`].
fn half_scale(scale: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(scale >> 3), u32::from(scale & 7));
    match exponent {
        0 => mantissa as f32 / 1024.0,
        _ => f32::from_bits((exponent + 119) << 23 | mantissa << 20),
    }
}

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let quants = &quants[16 * run..];
    std::array::from_fn(|i| {
        let half = half_scale(scales[2 * run + i / GROUP]);
        half * mxfp4::doubled(nibble(quants, i))
    })
}

pub(crate) struct Panels;

/// The scales of a unit: the halves of the groups' scales as f16, which has them all.
impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const GROUPS: usize = 2;
    const WEIGHTS: Weights = Weights::Shifted(12);
    const GREATEST: usize = 24;
    const FILE_BYTES: usize = BYTES;
    const SCALE_BYTES: usize = LEN / GROUP * 16;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let at = QUANTS + 16 * run;
        std::array::from_fn(|i| {
            word(block, at + i / 4 * 8 + i % 2 * 4) >> (i % 4 / 2 * 4) & 0x0f0f_0f0f
        })
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for group in 0..LEN / GROUP {
            let half = f16_from_f32(half_scale(kernel_scale(block[group])));
            scales[16 * group + 2 * row..][..2].copy_from_slice(&half.to_le_bytes());
        }
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        std::array::from_fn(|column| {
            let group = 2 * run + column / GROUP;
            let half = f16_at(scales, 16 * group + 2 * row);
            half * f32::from(DOUBLED[usize::from(quants[column])] - 12)
        })
    }

    type Head<S: Simd> = ();
    type Factors<S: Simd> = [S::Floats; 2];

    #[inline(always)]
    unsafe fn head<S: Simd>(_scales: *const u8) {}

    #[inline(always)]
    unsafe fn factors<S: Simd>((): (), scales: *const u8, run: usize) -> [S::Floats; 2] {
        unsafe {
            let scales = scales.add(32 * run);
            [S::f16s(scales), S::f16s(scales.add(16))]
        }
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { S::table(&DOUBLED, planes::vector::<S>(4, run, i)) }
    }

    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        factors: [S::Floats; 2],
        x_scale: *const f32,
        _x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let product = weighted::<S>([S::floats(dots[0]), S::floats(dots[1])], factors);
            S::add(total, S::mul(product, S::splat_f32(x_scale)))
        }
    }
}
