// TQ1_0 or TQ2_0 matrix: value = d * (q - 1) with 2-bit quants q and an f16 d for eight blocks.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec2<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_open(block: u32) -> weights_Block {
    let d = unpack2x16float(weights_scales[block / 16u])[block / 8u % 2u];
    return weights_Block(weights_quants[block], d);
}
