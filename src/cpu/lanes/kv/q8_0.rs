//! Blocks of 32 elements of a head: an f32 scale, then 32 i8, each the element divided by the scale.

use super::{Declaration, Elements};
use crate::lanes::f32x8::{LANES, Strip};

pub(crate) struct Format;

impl Elements for Format {
    const BLOCK_LEN: usize = 32;
    const BLOCK_WORDS: usize = 1 + Self::BLOCK_LEN / 4;

    #[inline(always)]
    unsafe fn load<S: Strip>(head: *const u32, at: usize) -> S {
        // SAFETY: the caller's.
        unsafe {
            let block = head.add(at / Self::BLOCK_LEN * Self::BLOCK_WORDS);
            let quants = S::load_i8(block.add(1 + at % Self::BLOCK_LEN / 4));
            quants.mul(S::splat(f32::from_bits(*block)))
        }
    }
}

pub(super) static DECLARATION: Declaration = Declaration {
    error: 16.0 / 254.0,
    tolerance: 3e-2,
    load_wgsl: wgsl!("shared/kv/q8_0"),
    store_wgsl: wgsl!("shared/kv/q8_0_store"),
    decode: |words, at| {
        let quant = (words[1 + at / 4] >> (8 * (at % 4))) as i8;
        f32::from(quant) * f32::from_bits(words[0])
    },
    encode: |values, words| {
        let blocks = words.chunks_exact_mut(Format::BLOCK_WORDS);
        for (block, values) in blocks.zip(values.chunks_exact(Format::BLOCK_LEN)) {
            encode(values, block);
        }
    },
};

/// Encodes 32 elements.
fn encode(values: &[f32], block: &mut [u32]) {
    let mut peaks = [0f32; LANES];
    for values in values.chunks_exact(LANES) {
        for (peak, value) in peaks.iter_mut().zip(values) {
            *peak = if value.abs() > *peak {
                value.abs()
            } else {
                *peak
            };
        }
    }
    let peak = peaks.into_iter().fold(0.0, f32::max);
    let per_quant = if peak > 0.0 { 127.0 / peak } else { 0.0 };
    let quant = |value: &f32| (value * per_quant + 0.5).floor() as i8 as u8;
    block[0] = (peak / 127.0).to_bits();
    for (word, four) in block[1..].iter_mut().zip(values.chunks_exact(4)) {
        *word = u32::from_le_bytes(std::array::from_fn(|i| quant(&four[i])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_peak_and_round_half_up() {
        let mut row = [0.0; Format::BLOCK_LEN];
        (row[0], row[5], row[31]) = (-127.0, 64.5, 3.0);
        let mut words = [0; Format::BLOCK_WORDS];
        encode(&row, &mut words);
        assert_eq!(f32::from_bits(words[0]), 1.0);
        let quants: Vec<i8> = words[1..]
            .iter()
            .flat_map(|word| word.to_le_bytes().map(|b| b as i8))
            .collect();
        assert_eq!(
            (quants[0], quants[5], quants[31], quants[1]),
            (-127, 65, 3, 0)
        );
        encode(&[0.0; Format::BLOCK_LEN], &mut words);
        assert_eq!(words, [0; Format::BLOCK_WORDS]);
    }
}
