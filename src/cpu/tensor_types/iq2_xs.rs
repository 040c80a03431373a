//! IQ2_XS: see `iq2.rs`. Eight elements are a point of a grid of 512 and seven bits of signs.

use super::{
    codebook::{self, Codebook, even_signs, half, low_first},
    declaration::Declaration,
    grids, iq2,
};

/// f16 d; a u16 for eight elements, nine bits of the point and seven of signs; a nibble for the scale of each group.
const SCALES: usize = 2 + codebook::LEN / 8 * 2;
const BYTES: usize = SCALES + codebook::LEN / 32;

pub(super) static DECLARATION: Declaration = iq2::declaration::<Format>(17);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Codebook for Format {
    type Levels = iq2::SignedLevels;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        low_first(&block[SCALES..], group)
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let bits = half(&block[2..], eight);
        let point = grids::IQ2_XS.point(usize::from(bits & 511));
        iq2::quants(point, even_signs(u32::from(bits >> 9)))
    }
}
