//! F32: four little-endian bytes per element. Knows no other type.

use super::{Codec, all_quants};

pub(super) const CODEC: Codec = Codec {
    name: "F32",
    gguf_id: 0,
    block_len: 1,
    block_bytes: 4,
    quants_bytes: 4,
    scales_bytes: 0,
    dequantize,
    quantize: Some(quantize),
    split_blocks: all_quants,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (value, &bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(bytes);
    }
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}
