//! The scales of Q4_K and Q5_K super-blocks: an f16 d, an f16 dmin, and eight scales and minima of six
//! bits each in 12 bytes. Knows nothing of quants.

use super::f16_at;

/// Bytes of the scales; super-blocks begin with them.
pub(super) const BYTES: usize = 16;

/// Factor and minimum of each run of 32 elements: value = factor * q - minimum.
pub(super) fn of(block: &[u8]) -> [(f32, f32); 8] {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    let packed = &block[4..BYTES];
    std::array::from_fn(|run| {
        // The first four stand alone; the upper two bits of the last four stand above them.
        let (scale, minimum) = if run < 4 {
            (packed[run] & 63, packed[run + 4] & 63)
        } else {
            let low = packed[run + 4];
            (
                low & 15 | packed[run - 4] >> 6 << 4,
                low >> 4 | packed[run] >> 6 << 4,
            )
        };
        (d * f32::from(scale), dmin * f32::from(minimum))
    })
}
