//! Q8_0: blocks of 32 elements, value = d * q with an f16 scale d and i8 quants q.

use super::codec::{Codec, Values, f16_at, inverse_or_zero, push_f16, scales_first};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, then one i8 per element.
const BYTES: usize = 2 + LEN;

pub(super) const CODEC: Codec = Codec {
    repack: scales_first::<BYTES, 2>,
    decode,
    quantize: Some(quantize),
};

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 0);
    std::array::from_fn(|i| d * f32::from(quants[i] as i8))
}

/// ggml's `quantize_row_q8_0_ref`: d = max |x| / 127, q = x / d rounded half away from zero. q is
/// computed with the unrounded d; d is stored as f16.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let amax = x.iter().fold(0.0, |amax: f32, x| amax.max(x.abs()));
        let d = amax / 127.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        out.extend(x.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}
