//! The panels of plain floats: the elements of 8 rows for each column, with their own bits.

use crate::simd::Simd;

/// A type of plain floats.
pub(crate) trait Floats {
    /// Bytes of an element.
    const BYTES: usize;

    /// The value of an element.
    fn value(element: &[u8]) -> f32;

    /// The elements of 4 columns.
    ///
    /// # Safety
    /// The same conditions as for [`Simd`].
    unsafe fn columns<S: Simd>(at: *const u8) -> [S::Floats; 4];
}
