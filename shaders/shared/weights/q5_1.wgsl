// Q5_1 matrix: value = d * q + m with 5-bit quants q, an f16 d and an f16 m per block.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec2<u32>>; // [rows * blocks]: fifth bits; d and m

fn weights_open(block: u32) -> weights_Block {
    let scales = weights_scales[block];
    let affine = unpack2x16float(scales.y);
    return weights_Block(weights_nibbles(block), scales.x, affine.x, affine.y);
}
