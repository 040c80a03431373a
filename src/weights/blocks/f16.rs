//! F16: IEEE half precision, little-endian; rounding to nearest, ties to even. Knows no other type.

use half::f16;

use super::{Codec, all_quants};

pub(super) const CODEC: Codec = Codec {
    name: "F16",
    gguf_id: 1,
    block_len: 1,
    block_bytes: 2,
    quants_bytes: 2,
    scales_bytes: 0,
    dequantize,
    quantize: Some(quantize),
    split_blocks: all_quants,
};

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    for (value, &bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *value = f16::from_le_bytes(bytes).to_f32();
    }
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    out.extend(
        values
            .iter()
            .flat_map(|&value| f16::from_f32(value).to_le_bytes()),
    );
}
