//! F32, F16 and BF16: a panel has the elements of 8 rows for each column, with their own bits.

use crate::simd::{Simd, f16_to_f32};

/// A format of plain floats.
pub(crate) trait Floats {
    /// Bytes of an element.
    const BYTES: usize;

    /// The value of an element.
    fn value(element: &[u8]) -> f32;

    /// The elements of 4 columns.
    ///
    /// # Safety
    /// As of [`Simd`].
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4];
}

/// IEEE single precision.
pub(crate) struct F32;
/// IEEE half precision.
pub(crate) struct F16;
/// The upper half of an f32.
pub(crate) struct Bf16;

impl Floats for F32 {
    const BYTES: usize = 4;

    fn value(element: &[u8]) -> f32 {
        f32::from_bits(super::word(element, 0))
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe {
            [
                S::f32s(at),
                S::f32s(at.add(32)),
                S::f32s(at.add(64)),
                S::f32s(at.add(96)),
            ]
        }
    }
}

impl Floats for F16 {
    const BYTES: usize = 2;

    fn value(element: &[u8]) -> f32 {
        f16_to_f32(u16::from_le_bytes([element[0], element[1]]))
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe { S::f16_columns(at) }
    }
}

impl Floats for Bf16 {
    const BYTES: usize = 2;

    fn value(element: &[u8]) -> f32 {
        f32::from_bits(u32::from(u16::from_le_bytes([element[0], element[1]])) << 16)
    }

    #[inline(always)]
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4] {
        unsafe {
            [
                S::bf16s(at),
                S::bf16s(at.add(16)),
                S::bf16s(at.add(32)),
                S::bf16s(at.add(48)),
            ]
        }
    }
}
