//! MXFP4 (OCP Microscaling Formats 1.0): blocks of 32 elements, value = 2^(e - 127) * E2M1(q) with an
//! exponent byte e and 4-bit floats q.

use super::{
    block_scales::one_factor,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{Values, nibble, push_nibbles},
    planes,
    quantized::{Quantized, file_nibbles},
};
use crate::simd::{Simd, Weights, half_exponent};

/// Elements per file block.
const LEN: usize = 32;
/// e, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 1 + LEN / 2;

/// Twice the values of the 4-bit floats, plus 12, so that none is negative. ggml has no negative zero.
pub(super) const DOUBLED: [i8; 16] = [12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0];

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 39,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[],
    kernel_block_words: 4,
    scale_bytes: 1,
    scale_words: &[ScaleWord::Exponents],
    has_row_factors: false,
    wgsl: forms!(["blocks", "nibbles"] "parts/bytes", "parts/e2m1", "mxfp4"),
    i8_wgsl: None,
    repack,
    decode,
    quantize: None,
};

/// The kernels number the values in ascending order. In the file, quants 0 to 7 are the positive values in ascending
/// order, 8 to 15 their negatives.
fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        push_nibbles(quants, |i| place(nibble(&block[1..], i)));
        scales.push(block[0]);
    }
}

/// The kernels' number of the value of a quant.
pub(super) fn place(quant: u8) -> u8 {
    match quant {
        0..8 => quant + 8,
        _ => 15 - quant,
    }
}

/// Twice the value of a number of the kernels.
pub(super) fn doubled(place: u8) -> f32 {
    let quant = match place {
        8.. => place - 8,
        _ => 15 - place,
    };
    f32::from(DOUBLED[usize::from(quant)] - 12)
}

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let half = half_exponent(scales[0]);
    std::array::from_fn(|i| half * doubled(nibble(quants, i)))
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 4;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(12);
    const GREATEST: usize = 24;
    const FILE_BYTES: usize = BYTES;
    const SCALE_BYTES: usize = 8;

    fn quants(block: &[u8], _run: usize) -> [u32; 8] {
        file_nibbles(&block[1..])
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        scales[row] = block[0];
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        let half = half_exponent(scales[row]);
        quants.map(|q| half * f32::from(DOUBLED[usize::from(q)] - 12))
    }

    one_factor!();

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::exponents(scales) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(head: S::Floats, _scales: *const u8, _run: usize) -> S::Floats {
        head
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { S::table(&DOUBLED, planes::vector::<S>(4, run, i)) }
    }
}
