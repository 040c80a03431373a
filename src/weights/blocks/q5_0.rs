//! Q5_0: blocks of 32 elements, value = d * (q - 16) with an f16 scale d and 5-bit quants q. Knows no
//! other type.

use super::{Codec, f16_at, order, q5_1::pack};
use half::f16;

/// Elements per block.
const LEN: usize = 32;
/// f16 scale, a word whose bit i is the fifth bit of element i, nibbles as in Q4_0.
const BYTES: usize = 2 + 4 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "Q5_0",
    gguf_id: 6,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 6,
    dequantize,
    quantize: Some(quantize),
    split_blocks,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16_at(block, 0);
        for (i, value) in values.iter_mut().enumerate() {
            let high = block[2 + i / 8] >> (i % 8) & 1;
            let q = block[6 + i % 16] >> (i / 16 * 4) & 15 | high << 4;
            *value = d * f32::from(q as i8 - 16);
        }
    }
}

fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        quants.extend_from_slice(&block[6..]);
        order::push_bits(scales, |i| block[2 + i / 8] >> (i % 8));
        scales.extend_from_slice(&block[..2]);
    }
}

/// ggml's `quantize_row_q5_0_ref`: as Q4_0 with d = extreme / -16.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let extreme = x
            .iter()
            .fold(0.0f32, |e, &x| if e.abs() < x.abs() { x } else { e });
        let d = extreme / -16.0;
        let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
        out.extend(f16::from_f32(d).to_le_bytes());
        pack(out, x.map(|x| ((x * inverse + 16.5) as u8).min(31)));
    }
}
