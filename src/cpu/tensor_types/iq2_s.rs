//! IQ2_S: see `iq2.rs`. Eight elements are a point of a grid of 1024 and eight bits of signs.

use super::{
    codebook::{self, Codebook, low_first},
    declaration::Declaration,
    grids, iq2,
};

/// f16 d; for eight elements each: the lower eight bits of the point, the signs, the upper two bits of the point; a nibble
/// for the scale of each group.
const SIGNS: usize = 2 + codebook::LEN / 8;
const HIGH: usize = SIGNS + codebook::LEN / 8;
const SCALES: usize = HIGH + codebook::LEN / 32;
const BYTES: usize = SCALES + codebook::LEN / 32;

pub(super) static DECLARATION: Declaration = iq2::declaration::<Format>(22);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Codebook for Format {
    type Levels = iq2::SignedLevels;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        low_first(&block[SCALES..], group)
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let high = block[HIGH + eight / 4] >> (eight % 4 * 2) & 3;
        let point = usize::from(high) << 8 | usize::from(block[2 + eight]);
        iq2::quants(grids::IQ2_S.point(point), block[SIGNS + eight])
    }
}
