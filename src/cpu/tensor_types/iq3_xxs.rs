//! IQ3_XXS: super-blocks of 256 elements in runs of 32, value = d / 2 * (2 * scale + 1) * level with the levels 2, 6, 10, 14,
//! 18, 22, 26, 31. Four elements are a point of a grid of 256, eight have seven bits of signs; see `iq3.rs`.

use super::{
    codebook::{self, Codebook, Levels, even_signs},
    declaration::{Declaration, forms},
    grids, iq3,
    quantized::word,
};

/// f16 d; a byte for the point of four elements; for each run, a word with four times seven bits of signs and the scale.
const SIGNS: usize = 2 + codebook::LEN / 4;
const BYTES: usize = SIGNS + codebook::LEN / 32 * 4;

pub(super) static DECLARATION: Declaration = iq3::declaration::<Format>(
    18,
    forms!(["blocks", "nibbles"] "parts/bytes", "parts/iq3", "iq3_xxs"),
);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Levels for Format {
    const BITS: usize = iq3::BITS;
    const GROUPS: usize = iq3::GROUPS;
    const DIVISOR: f32 = 2.0;
    const TABLE: [i8; 16] = [0, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 62];
    const ZERO: i32 = 31;
    const GREATEST: usize = 62;

    fn value(quant: u8) -> f32 {
        f32::from(Self::TABLE[usize::from(quant)] - 31)
    }
}

impl Codebook for Format {
    type Levels = Self;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        block[SIGNS + 4 * group + 3] >> 4
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let signs = word(block, SIGNS + eight / 4 * 4) >> (eight % 4 * 7);
        let levels = [0, 1].map(|i| grids::IQ3_XXS.point(block[2 + 2 * eight + i].into()));
        iq3::quants(levels, even_signs(signs))
    }
}
