//! Small functions that several tensor types share: reading scales, searching for them, moving whole blocks.

use crate::half::{f16_from_f32, f16_to_f32};

/// `Declaration::repack` of types without scales.
pub(super) fn all_quants(bytes: &[u8], quants: &mut Vec<u8>, _scales: &mut Vec<u8>) {
    quants.extend_from_slice(bytes);
}

/// `Declaration::repack` of types whose file block of `BLOCK` bytes has `SCALES` bytes of scales, then
/// quants in the order of the kernels.
pub(super) fn scales_first<const BLOCK: usize, const SCALES: usize>(
    bytes: &[u8],
    quants: &mut Vec<u8>,
    scales: &mut Vec<u8>,
) {
    for block in bytes.as_chunks::<BLOCK>().0 {
        scales.extend_from_slice(&block[..SCALES]);
        quants.extend_from_slice(&block[SCALES..]);
    }
}

/// The f16 whose two bytes start at byte `at`.
pub(super) fn f16_at(bytes: &[u8], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Appends a value rounded to f16.
pub(super) fn push_f16(out: &mut Vec<u8>, value: f32) {
    out.extend(f16_from_f32(value).to_le_bytes());
}

/// Least and greatest value.
pub(super) fn extremes(values: &[f32]) -> (f32, f32) {
    let first = (f32::MAX, f32::MIN);
    let extremes = values.iter();
    extremes.fold(first, |(min, max), &x| (min.min(x), max.max(x)))
}

/// The first value of largest magnitude, with its sign; zero for no values.
pub(super) fn signed_extreme(values: impl IntoIterator<Item = f32>) -> f32 {
    let larger = |extreme: f32, x: f32| if x.abs() > extreme.abs() { x } else { extreme };
    values.into_iter().fold(0.0, larger)
}

/// `1 / d`; zero for a scale of zero, so that all quants become those of zero.
pub(super) fn inverse_or_zero(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}
