//! TQ1_0: super-blocks of 256 elements, value = d * (q - 1) with an f16 scale d and digits q of base 3, up to five in a
//! byte. Kernels read the layouts of TQ2_0.

use super::{
    block_scales::one_scale,
    declaration::{Declaration, ScaleWord, forms},
    q2_0,
    quantized::Quantized,
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
const LEN: usize = 256;
/// 32 and 16 bytes of five digits, 4 bytes of four digits, f16 d.
const FILE_D: usize = 32 + 16 + 4;
const BYTES: usize = FILE_D + 2;

pub(super) static DECLARATION: Declaration = Declaration {
    gguf_id: 34,
    block_len: LEN,
    block_bytes: BYTES,
    halves: &[FILE_D],
    kernel_block_words: 2,
    scale_bytes: 2,
    scale_words: &[ScaleWord::Halves],
    has_row_factors: false,
    wgsl: forms!(["blocks"] "parts/bytes", "parts/ternary", "tq2_0"),
    i8_wgsl: None,
    repack: q2_0::repack::<Panels, FILE_D>,
    decode: q2_0::decode,
    quantize: None,
};

/// The digit of an element. A byte is the fraction of 256 whose first digits are the elements': the first digits of all
/// bytes of a part come first, then the second ones.
fn digit(block: &[u8], element: usize) -> u8 {
    let (first, byte, bytes) = match element {
        0..160 => (0, 0, 32),
        160..240 => (160, 32, 16),
        _ => (240, 48, 4),
    };
    let place = (element - first) / bytes;
    let fraction = block[byte + (element - first) % bytes].wrapping_mul([1, 3, 9, 27, 81][place]);
    ((u16::from(fraction) * 3) >> 8) as u8
}

pub(crate) struct Panels;

impl Quantized for Panels {
    const BITS: usize = 2;
    const RUNS: usize = LEN / 32;
    const WEIGHTS: Weights = Weights::Shifted(1);
    one_scale!(FILE_D);
    const FILE_BYTES: usize = BYTES;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        std::array::from_fn(|i| {
            let four = std::array::from_fn(|j| digit(block, 32 * run + 4 * i + j));
            u32::from_le_bytes(four)
        })
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, _run: usize) -> [f32; 32] {
        q2_0::values(quants, scales, row)
    }
}
