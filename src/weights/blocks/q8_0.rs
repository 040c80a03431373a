//! Q8_0: blocks of 32 elements, value = d * q with an f16 scale d and i8 quants q. Knows no other
//! type.

use half::f16;

use super::{Codec, scales_first};

/// Elements per block.
const LEN: usize = 32;
/// f16 scale, then one i8 per element.
const BYTES: usize = 2 + LEN;

pub(super) const CODEC: Codec = Codec {
    name: "Q8_0",
    gguf_id: 8,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 32,
    scales_bytes: 2,
    dequantize,
    quantize: Some(quantize),
    split_blocks: scales_first::<BYTES, 2>,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16::from_le_bytes([block[0], block[1]]).to_f32();
        for (value, &q) in values.iter_mut().zip(&block[2..]) {
            *value = d * f32::from(q as i8);
        }
    }
}

/// ggml's `quantize_row_q8_0_ref`: d = max |x| / 127, q = x / d rounded half away from zero. The
/// unrounded d divides; the f16 one is stored.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let amax = x.iter().fold(0.0, |amax: f32, x| amax.max(x.abs()));
        let d = amax / 127.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(x.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}
