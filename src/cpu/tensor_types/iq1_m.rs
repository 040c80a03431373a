//! IQ1_M: see `iq1.rs`. 16 elements have a scale, eight have a shift.

use super::{
    codebook::{self, Codebook, half, low_first},
    declaration::Declaration,
    grids, iq1,
};

/// The lower eight bits of the point of eight elements; a nibble for each, three upper bits of the point and the shift; four
/// u16 with four scales of three bits and four bits of the f16 d each.
const HIGH: usize = codebook::LEN / 8;
const SCALES: usize = HIGH + codebook::LEN / 16;
const BYTES: usize = SCALES + 8;

pub(super) static DECLARATION: Declaration = iq1::declaration::<Format>(29, &[]);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Codebook for Format {
    type Levels = iq1::ShiftedLevels;
    const BYTES: usize = BYTES;

    fn d(block: &[u8]) -> [u8; 2] {
        let four = |i: usize| half(&block[SCALES..], i) >> 12 << (4 * i);
        (four(0) | four(1) | four(2) | four(3)).to_le_bytes()
    }

    fn scale(block: &[u8], group: usize) -> u8 {
        (half(&block[SCALES..], group / 4) >> (group % 4 * 3) & 7) as u8
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let high = low_first(&block[HIGH..], eight);
        let point = usize::from(high & 7) << 8 | usize::from(block[eight]);
        iq1::quants(grids::IQ1.point(point), high & 8 != 0)
    }
}
