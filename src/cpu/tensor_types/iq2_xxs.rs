//! IQ2_XXS: see `iq2.rs`. Eight elements are a point of a grid of 256 and seven bits of signs; two groups of 16 have the
//! same scale.

use super::{
    codebook::{self, Codebook, even_signs},
    declaration::Declaration,
    grids, iq2,
    quantized::word,
};

/// f16 d; for each run four bytes of points, then a word with four times seven bits of signs and the scale.
const BYTES: usize = 2 + codebook::LEN / 32 * 8;

pub(super) static DECLARATION: Declaration = iq2::declaration::<Format>(16);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Codebook for Format {
    type Levels = iq2::SignedLevels;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        block[2 + group / 2 * 8 + 7] >> 4
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let (run, i) = (&block[2 + eight / 4 * 8..], eight % 4);
        let point = grids::IQ2_XXS.point(run[i].into());
        iq2::quants(point, even_signs(word(run, 4) >> (7 * i)))
    }
}
