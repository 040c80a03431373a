// IQ4_NL matrix: value = d * table[q] with 32 nibbles q and an f16 d per block.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_open(block: u32) -> weights_Block {
    let d = unpack2x16float(weights_scales[block / 2u])[block % 2u];
    return weights_Block(weights_nibbles(block), d);
}
