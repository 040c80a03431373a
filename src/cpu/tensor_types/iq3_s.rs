//! IQ3_S: super-blocks of 256 elements in runs of 32, value = d * (2 * scale + 1) * level with the odd levels 1 to 15. Four
//! elements are a point of a grid of 512, eight have eight bits of signs; see `iq3.rs`.

use super::{
    codebook::{self, Codebook, Levels, low_first},
    declaration::{Declaration, forms},
    grids, iq3,
};

/// f16 d; the lower eight bits of the point of four elements; their upper bits; a byte of signs for eight elements; a nibble
/// for the scale of each run.
const HIGH: usize = 2 + codebook::LEN / 4;
const SIGNS: usize = HIGH + codebook::LEN / 32;
const SCALES: usize = SIGNS + codebook::LEN / 8;
const BYTES: usize = SCALES + codebook::LEN / 64;

pub(super) static DECLARATION: Declaration = iq3::declaration::<Format>(
    21,
    forms!(["blocks", "nibbles"] "parts/bytes", "parts/iq3", "iq3_s"),
);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Levels for Format {
    const BITS: usize = iq3::BITS;
    const GROUPS: usize = iq3::GROUPS;
    const DIVISOR: f32 = 1.0;
    const TABLE: [i8; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
    const ZERO: i32 = 15;
    const GREATEST: usize = 30;

    fn value(quant: u8) -> f32 {
        2.0 * f32::from(quant) - 15.0
    }
}

impl Codebook for Format {
    type Levels = Self;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        low_first(&block[SCALES..], group)
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let levels = [0, 1].map(|i| {
            let four = 2 * eight + i;
            let high = block[HIGH + four / 8] >> (four % 8) & 1;
            grids::IQ3_S.point(usize::from(high) << 8 | usize::from(block[2 + four]))
        });
        iq3::quants(levels, block[SIGNS + eight])
    }
}
