//! IQ1_S: see `iq1.rs`. A run of 32 elements has one scale and one shift.

use super::{
    codebook::{self, Codebook, half},
    declaration::Declaration,
    grids, iq1,
};

/// f16 d; the lower eight bits of the point of eight elements; for each run a u16 with four times three upper bits, three
/// bits of the scale and the shift.
const HIGH: usize = 2 + codebook::LEN / 8;
const BYTES: usize = HIGH + codebook::LEN / 32 * 2;

pub(super) static DECLARATION: Declaration = iq1::declaration::<Format>(19, &[0]);

pub(crate) type Panels = codebook::Panels<Format>;

pub(crate) struct Format;

impl Codebook for Format {
    type Levels = iq1::ShiftedLevels;
    const BYTES: usize = BYTES;

    fn scale(block: &[u8], group: usize) -> u8 {
        (half(&block[HIGH..], group / 2) >> 12 & 7) as u8
    }

    fn eight(block: &[u8], eight: usize) -> [u8; 8] {
        let of_run = half(&block[HIGH..], eight / 4);
        let high = usize::from(of_run >> (eight % 4 * 3) & 7);
        let point = grids::IQ1.point(high << 8 | usize::from(block[2 + eight]));
        iq1::quants(point, of_run >> 15 == 1)
    }
}
