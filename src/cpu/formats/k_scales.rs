//! The scales of Q4_K and Q5_K: f16 d and dmin, a scale and a minimum of 6 bits for each of 8 runs. In a unit, the
//! latter are bytes: those of 8 rows for the scale of each run, then for the minima; then d and dmin.

use super::{copy_f16, f16_at};
use crate::simd::Simd;

/// Bytes of the scales in the file, which blocks start with.
pub(super) const FILE_BYTES: usize = 2 + 2 + 12;
/// Bytes of the scales of a unit.
pub(super) const BYTES: usize = D + 32;
const MINIMA: usize = 8 * 8;
const D: usize = 2 * MINIMA;

/// Scale and minimum of a run. Each of the first four has a byte for its scale and one for its minimum; their upper
/// two bits belong to the last four, whose lower four bits share a byte.
fn file_scales(block: &[u8], run: usize) -> (u8, u8) {
    let packed = &block[4..FILE_BYTES];
    if run < 4 {
        return (packed[run] & 63, packed[run + 4] & 63);
    }
    let low = packed[run + 4];
    (
        low & 15 | packed[run - 4] >> 6 << 4,
        low >> 4 | packed[run] >> 6 << 4,
    )
}

pub(super) fn pack(block: &[u8], row: usize, scales: &mut [u8]) {
    for run in 0..8 {
        let (scale, minimum) = file_scales(block, run);
        scales[8 * run + row] = scale;
        scales[MINIMA + 8 * run + row] = minimum;
    }
    copy_f16(block, 0, row, &mut scales[D..]);
    copy_f16(block, 2, row, &mut scales[D + 16..]);
}

/// Factor and minimum of a run.
pub(super) fn of_run(scales: &[u8], row: usize, run: usize) -> (f32, f32) {
    let (d, dmin) = (
        f16_at(scales, D + 2 * row),
        f16_at(scales, D + 16 + 2 * row),
    );
    (
        d * f32::from(scales[8 * run + row]),
        dmin * f32::from(scales[MINIMA + 8 * run + row]),
    )
}

/// d and dmin.
///
/// # Safety
/// As of [`Simd`].
#[inline(always)]
pub(super) unsafe fn head<S: Simd>(scales: *const u8) -> [S::Floats; 2] {
    unsafe { [S::f16s(scales.add(D)), S::f16s(scales.add(D + 16))] }
}

/// Factors and minima of a run.
///
/// # Safety
/// As of [`Simd`].
#[inline(always)]
pub(super) unsafe fn factors<S: Simd>(
    [d, dmin]: [S::Floats; 2],
    scales: *const u8,
    run: usize,
) -> [S::Floats; 2] {
    unsafe {
        [
            S::mul(d, S::u8s(scales.add(8 * run))),
            S::mul(dmin, S::u8s(scales.add(MINIMA + 8 * run))),
        ]
    }
}
