//! IQ4_XS: super-blocks of 256 elements in runs of 32, value = d * (scale - 32) * TABLE\[q\] with an f16
//! d, a 6-bit scale per run, 4-bit quants q and the table of IQ4_NL.

use super::{
    codec::{Codec, Values, f16_at, scales_first},
    iq4_nl::TABLE,
    kernel_order::nibble,
};

/// f16 d, upper two bits of the scales, their nibbles; per run, 16 bytes as in IQ4_NL.
const QUANTS: usize = 2 + 2 + 4;
const BYTES: usize = QUANTS + 256 / 2;

pub(super) const CODEC: Codec = Codec {
    repack: scales_first::<BYTES, QUANTS>,
    decode,
    quantize: None,
};

fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let low = scales[4 + run / 2] >> (run % 2 * 4) & 15;
    let high = scales[2 + run / 4] >> (run % 4 * 2) & 3;
    let factor = f16_at(scales, 0) * (f32::from(low | high << 4) - 32.0);
    let quants = &quants[run * 16..];
    std::array::from_fn(|i| factor * f32::from(TABLE[usize::from(nibble(quants, i))]))
}
