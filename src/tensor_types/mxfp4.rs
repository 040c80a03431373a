//! MXFP4 (OCP Microscaling Formats 1.0): blocks of 32 elements, value = 2^(e - 127) * E2M1(q) with an
//! exponent byte e and 4-bit floats q.

use super::{
    codec::{Codec, Values},
    kernel_order::{nibble, push_nibbles},
};

/// e, then byte j with element j in its low and element j + 16 in its high nibble.
const BYTES: usize = 1 + 16;

/// Twice the values of the 4-bit floats in ascending order, which is how the kernels number them. ggml has
/// no negative zero.
const DOUBLED: [f32; 16] = [
    -12.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0,
];

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: None,
};

/// In the file, quants 0 to 7 are the positive values in ascending order, 8 to 15 their negatives.
fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        push_nibbles(quants, |i| match nibble(&block[1..], i) {
            q @ 0..8 => q + 8,
            q => 15 - q,
        });
        scales.push(block[0]);
    }
}

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    // 2^(e - 128): half of the block's scale. The two least are subnormal.
    let half = f32::from_bits(match scales[0] {
        e @ 0..=1 => 0x0020_0000 << e,
        e => u32::from(e - 1) << 23,
    });
    std::array::from_fn(|i| half * DOUBLED[usize::from(nibble(quants, i))])
}
