// MXFP4 matrix: value = 2^(exponent - 127) * table[q] with 32 nibbles q and an exponent byte per block.
// Nibbles are numbered from the smallest value to the largest: -6, -4, -3, -2, -1.5, -1, -0.5, -0,
// 0, 0.5, 1, 1.5, 2, 3, 4, 6. Byte j holds element j in its low nibble and element j + 16 in its high one.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // four exponents per word

struct weights_Block {
    quants: vec4<u32>,
    factor: f32,
}

fn weights_open(block: u32) -> weights_Block {
    let exponent = (weights_scales[block / 4u] >> (block % 4u * 8u)) & 255u;
    // Half of the power, since weights_four doubles the values. Powers up to 2^-127 become zero.
    return weights_Block(weights_quants[block], bitcast<f32>((max(exponent, 1u) - 1u) << 23u));
}

// Weights 4 * i to 4 * i + 3. A table with a variable index would be kept in memory. This polynomial differs from
// the doubled values, which are integers, by less than 0.402, so rounding gives them exactly.
fn weights_four(block: weights_Block, i: u32) -> vec4<f32> {
    let t = weights_bytes((block.quants[i % 4u] >> (i / 4u * 4u)) & 0x0f0f0f0fu) - 7.5;
    return block.factor * round(t * (0.0181405896 * t * t + 0.526077098));
}
