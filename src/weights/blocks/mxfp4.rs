//! MXFP4 (OCP Microscaling Formats 1.0): blocks of 32 elements, value = 2^(e - 127) * E2M1(q) with a
//! byte e of exponent and 4-bit floats q. Knows no other type.

use super::{Codec, order};

/// Elements per block.
const LEN: usize = 32;
/// e, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 1 + LEN / 2;

/// Twice the values of the 4-bit floats; ggml has no negative zero.
const DOUBLED: [f32; 16] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0,
];

pub(super) const CODEC: Codec = Codec {
    name: "MXFP4",
    gguf_id: 39,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: 16,
    scales_bytes: 1,
    dequantize,
    quantize: None,
    split_blocks,
};

fn quant(block: &[u8; BYTES], i: usize) -> u8 {
    block[1 + i % 16] >> (i / 16 * 4) & 15
}

/// 2^(e - 128): half of the block's scale. The two least are subnormal.
fn half_scale(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => u32::from(e - 1) << 23,
    })
}

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let half = half_scale(block[0]);
        for (i, value) in values.iter_mut().enumerate() {
            *value = half * DOUBLED[usize::from(quant(block, i))];
        }
    }
}

/// The kernels want nibbles in the order of the values that they stand for.
fn split_blocks(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        order::push_nibbles(quants, |i| match quant(block, i) {
            q @ 0..8 => q + 8,
            q => 15 - q,
        });
        scales.push(block[0]);
    }
}
