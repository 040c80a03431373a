//! F32: four little-endian bytes per element.

use super::codec::{Codec, Values, all_quants};

pub(super) const CODEC: Codec = Codec {
    repack: all_quants,
    decode,
    quantize: Some(quantize),
};

fn decode(quants: &[u8], _scales: &[u8], _run: usize) -> Values {
    let elements = quants.as_chunks().0;
    std::array::from_fn(|i| f32::from_le_bytes(elements[i]))
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}
