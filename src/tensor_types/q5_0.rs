//! Q5_0: blocks of 32 elements, value = d * (q - 16) with an f16 scale d and 5-bit quants q.

use super::{
    codec::{Codec, Values, f16_at, inverse_or_zero, push_f16, signed_extreme},
    kernel_order::{five_bits, push_bits},
    q5_1::pack,
};

/// Elements per file block.
const LEN: usize = 32;
/// f16 scale, a word whose bit i is the fifth bit of element i, nibbles as in Q4_0.
const BYTES: usize = 2 + 4 + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    repack,
    decode,
    quantize: Some(quantize),
};

fn repack(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.as_chunks::<BYTES>().0 {
        quants.extend_from_slice(&block[6..]);
        push_bits(scales, |i| block[2 + i / 8] >> (i % 8));
        scales.extend_from_slice(&block[..2]);
    }
}

fn decode(quants: &[u8], scales: &[u8], _run: usize) -> Values {
    let d = f16_at(scales, 4);
    std::array::from_fn(|i| d * (f32::from(five_bits(quants, scales, i)) - 16.0))
}

/// ggml's `quantize_row_q5_0_ref`: as Q4_0 with d = extreme / -16.
fn quantize(values: &[f32], out: &mut Vec<u8>) {
    for x in values.as_chunks::<LEN>().0 {
        let d = signed_extreme(*x) / -16.0;
        let inverse = inverse_or_zero(d);
        push_f16(out, d);
        pack(out, x.map(|x| ((x * inverse + 16.5) as u8).min(31)));
    }
}
