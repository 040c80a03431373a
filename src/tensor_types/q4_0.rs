//! Q4_0: blocks of 32 elements, value = d * (q - 8) with an f16 scale d and 4-bit quants q.

use super::{
    codec::{Codec, Values, f16_at, inverse_or_zero, push_f16, scales_first, signed_extreme},
    kernel_order::{nibble, push_nibbles},
};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: Some(quantize),
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * (f32::from(nibble(quants, i)) - 8.0))
}

/// ggml's `quantize_row_q4_0_ref`: d = (the value of largest magnitude, with its sign) / -8, so
/// that it becomes q = 0; q = x / d + 8.5 cut to an integer, at most 15.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let d = signed_extreme(*x) / -8.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        push_nibbles(out, |i| ((x[i] * inverse + 8.5) as u8).min(15));
    }
}
