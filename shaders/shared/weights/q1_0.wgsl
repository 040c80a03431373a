// Q1_0 matrix: value = d or -d with a bit for each element, 1 for d, and an f16 d for four blocks. Bit i of byte j of a
// block's word is element 4 * i + j.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<u32>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

struct weights_Block {
    bits: u32,
    d: f32,
}

fn weights_open(block: u32) -> weights_Block {
    let d = unpack2x16float(weights_scales[block / 8u])[block / 4u % 2u];
    return weights_Block(weights_quants[block], d);
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    return block.d * (2.0 * weights_bytes((block.bits >> (half * 4u + word)) & 0x01010101u) - 1.0);
}
