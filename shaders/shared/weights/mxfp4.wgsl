// MXFP4 matrix: value = 2^(exponent - 127) * float with 32 nibbles (see parts/e2m1.wgsl) and an exponent byte per block.
// Byte j holds element j in its low nibble and element j + 16 in its high one.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // four exponents per word

struct weights_Block {
    nibbles: weights_Nibbles,
    factor: f32,
}

fn weights_open(block: u32) -> weights_Block {
    let exponent = (weights_scales[block / 4u] >> (block % 4u * 8u)) & 255u;
    // Half of the power, since weights_four doubles the values. Powers up to 2^-127 become zero.
    return weights_Block(weights_nibbles(block), bitcast<f32>((max(exponent, 1u) - 1u) << 23u));
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_four_nibbles(block.nibbles, half, word);
    return block.factor * weights_doubled(weights_bytes(q));
}
