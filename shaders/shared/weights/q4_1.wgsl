// Q4_1 matrix: value = d * q + m with 32 nibbles q, an f16 d and an f16 m per block.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [rows * blocks], d and m

fn weights_open(block: u32) -> weights_Block {
    let affine = unpack2x16float(weights_scales[block]);
    return weights_Block(weights_nibbles(block), affine.x, affine.y);
}
