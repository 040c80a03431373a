//! BF16: the upper half of an f32, little-endian; rounds to nearest, ties to even.

use half::bf16;

use super::codec::{Codec, Values, all_quants};

pub(super) const CODEC: Codec = Codec {
    repack: all_quants,
    decode,
    quantize: Some(quantize),
};

fn decode(quants: &[u8], _scales: &[u8], _run: usize) -> Values {
    let elements = quants.as_chunks().0;
    std::array::from_fn(|i| bf16::from_le_bytes(elements[i]).to_f32())
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    let bytes = |&value: &f32| bf16::from_f32(value).to_le_bytes();
    out.extend(values.iter().flat_map(bytes));
}
