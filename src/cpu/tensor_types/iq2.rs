//! The parts that IQ2_XXS, IQ2_XS and IQ2_S share: levels of 8, 25 and 43 with a sign, value = d / 8 * (2 * scale + 1) * level with a
//! scale for 16 elements. A quant is two bits of the level's number, then the sign.

use super::{
    codebook::{self, Codebook, Levels},
    declaration::{Declaration, ScaleWord, forms},
};

/// The declaration of a type, which differs in its id and its block.
pub(super) const fn declaration<C: Codebook>(gguf_id: u32) -> Declaration {
    Declaration {
        gguf_id,
        block_len: codebook::LEN,
        block_bytes: C::BYTES,
        halves: &[0],
        kernel_block_words: 3,
        scale_bytes: 12,
        scale_words: &[ScaleWord::Bits, ScaleWord::Bits, ScaleWord::LowerHalf],
        has_row_factors: false,
        wgsl: forms!(["blocks"] "parts/bytes", "iq2"),
        i8_wgsl: None,
        repack: codebook::repack::<C>,
        decode: codebook::decode::<C>,
        quantize: None,
    }
}

/// The levels of all three types.
pub(crate) struct SignedLevels;

impl Levels for SignedLevels {
    const BITS: usize = 3;
    const GROUPS: usize = 2;
    const DIVISOR: f32 = 8.0;
    /// Values of quants plus [`Levels::ZERO`]. Blocks have no fourth level.
    const TABLE: [i8; 16] = [51, 68, 86, 0, 35, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const ZERO: i32 = 43;
    const GREATEST: usize = 86;

    /// The polynomial of the WGSL, also for a fourth level.
    fn value(quant: u8) -> f32 {
        let level = f32::from(quant & 3);
        let magnitude = 8.0 + level * (16.5 + 0.5 * level);
        if quant & 4 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }
}

/// The quants of eight elements.
pub(super) fn quants(levels: [u8; 8], signs: u8) -> [u8; 8] {
    std::array::from_fn(|i| levels[i] | (signs >> i & 1) << 2)
}
