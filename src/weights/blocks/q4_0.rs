//! Q4_0: blocks of 32 elements, value = d * (q - 8) with an f16 scale d and 4-bit quants q. Knows
//! no other type.

use half::f16;

use super::{Codec, scales_first};

/// Elements per block.
const LEN: usize = 32;
/// f16 scale, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 2 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q4_0",
    gguf_id: 2,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 2,
    dequantize,
    quantize: Some(quantize),
    split_blocks: scales_first::<BYTES, 2>,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16::from_le_bytes([block[0], block[1]]).to_f32();
        let (low, high) = values.split_at_mut(LEN / 2);
        for ((low, high), &q) in low.iter_mut().zip(high).zip(&block[2..]) {
            *low = d * f32::from((q & 0xF) as i8 - 8);
            *high = d * f32::from((q >> 4) as i8 - 8);
        }
    }
}

/// ggml's `quantize_row_q4_0_ref`: d = (the value of largest magnitude, with its sign) / -8, so
/// that it becomes q = 0; q = x / d + 8.5 cut to an integer, at most 15.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let extreme = x
            .iter()
            .fold(0.0f32, |e, &x| if e.abs() < x.abs() { x } else { e });
        let d = extreme / -8.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        let q = |x: f32| ((x * inverse + 8.5) as u8).min(15);
        out.extend(f16::from_f32(d).to_le_bytes());
        let (low, high) = x.split_at(LEN / 2);
        out.extend(low.iter().zip(high).map(|(&l, &h)| q(l) | q(h) << 4));
    }
}
