//! IQ4_XS: super-blocks of 256 elements in runs of 32, value = d * (scale - 32) * TABLE(q) with an f16
//! d, a 6-bit scale per run, 4-bit quants q and the table of IQ4_NL. Knows no other type.

use super::{Codec, f16_at, iq4_nl::TABLE, scales_first};

/// Elements per block.
const LEN: usize = 256;
/// f16 d, upper two bits of the scales, their nibbles; per run, 16 bytes as in IQ4_NL.
const QUANTS: usize = 2 + 2 + 4;
const BYTES: usize = QUANTS + LEN / 2;

pub(super) const CODEC: Codec = Codec {
    name: "IQ4_XS",
    gguf_id: 23,
    block_len: LEN,
    block_bytes: BYTES,
    quants_bytes: LEN / 2,
    scales_bytes: QUANTS,
    dequantize,
    quantize: None,
    split_blocks: scales_first::<BYTES, QUANTS>,
};

fn scale(block: &[u8; BYTES], run: usize) -> f32 {
    let low = block[4 + run / 2] >> (run % 2 * 4) & 15;
    let high = block[2 + run / 4] >> (run % 4 * 2) & 3;
    f32::from((low | high << 4) as i8 - 32)
}

fn dequantize(bytes: &[u8], out: &mut [f32]) {
    let blocks = bytes.as_chunks::<BYTES>().0;
    for (values, block) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(blocks) {
        let d = f16_at(block, 0);
        for (i, value) in values.iter_mut().enumerate() {
            let q = block[QUANTS + i / 32 * 16 + i % 16] >> (i % 32 / 16 * 4) & 15;
            *value = d * scale(block, i / 32) * f32::from(TABLE[usize::from(q)]);
        }
    }
}
