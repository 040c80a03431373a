//! BF16: the upper half of an f32, little-endian; rounding to nearest, ties to even. Knows no
//! other type.

use half::bf16;

use super::{Codec, all_quants};

pub(super) const CODEC: Codec = Codec {
    name: "BF16",
    gguf_id: 30,
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
        *value = bf16::from_le_bytes(bytes).to_f32();
    }
}

fn quantize(values: &[f32], out: &mut Vec<u8>) {
    out.extend(
        values
            .iter()
            .flat_map(|&value| bf16::from_f32(value).to_le_bytes()),
    );
}
