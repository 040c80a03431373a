//! Q4_1: blocks of 32 elements, value = d * q + m with an f16 scale d, an f16 minimum m and 4-bit
//! quants q. Knows no other type.

use super::{Codec, extremes, f16_at, scales_first};
use half::f16;

/// Elements per block.
const LEN: usize = 32;
/// f16 d and m, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 4 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q4_1",
    gguf_id: 3,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 4,
    dequantize,
    quantize: Some(quantize),
    split_blocks: scales_first::<BYTES, 4>,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let (d, m) = (f16_at(block, 0), f16_at(block, 2));
        for (i, value) in values.iter_mut().enumerate() {
            let q = block[4 + i % 16] >> (i / 16 * 4) & 15;
            *value = d * f32::from(q) + m;
        }
    }
}

/// ggml's `quantize_row_q4_1_ref`: d = (max - min) / 15, q = (x - min) / d + 0.5 cut to an integer.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let (min, max) = extremes(x);
        let d = (max - min) / 15.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        let q = |x: f32| (((x - min) * inverse + 0.5) as u8).min(15);
        out.extend(f16::from_f32(d).to_le_bytes());
        out.extend(f16::from_f32(min).to_le_bytes());
        let (low, high) = x.split_at(LEN / 2);
        out.extend(low.iter().zip(high).map(|(&l, &h)| q(l) | q(h) << 4));
    }
}
