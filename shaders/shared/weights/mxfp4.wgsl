// MXFP4 matrix: value = 2^(exponent - 127) * table[q] with 32 nibbles q and a byte of exponent per
// block. Nibbles are numbered from the least value to the greatest: -6, -4, -3, -2, -1.5, -1, -0.5, -0,
// 0, 0.5, 1, 1.5, 2, 3, 4, 6. Byte j holds element j in its low nibble and element j + 16 in its high one.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // four exponents per word

struct weights_Block {
    quants: vec4<u32>,
    factor: f32,
}

fn weights_open(block: u32) -> weights_Block {
    let exponent = (weights_scales[block / 4u] >> (block % 4u * 8u)) & 255u;
    // Half the power, as weights_four doubles its values; 2^-127 and below become zero.
    return weights_Block(weights_quants[block], bitcast<f32>((max(exponent, 1u) - 1u) << 23u));
}

// Weights 4 * i to 4 * i + 3. A table indexed by a variable is memory; this polynomial comes within
// 0.402 of each of the doubled values.
fn weights_four(block: weights_Block, i: u32) -> vec4<f32> {
    let t = weights_bytes((block.quants[i % 4u] >> (i / 4u * 4u)) & 0x0f0f0f0fu) - 7.5;
    return block.factor * round(t * (0.0181405896 * t * t + 0.526077098));
}
