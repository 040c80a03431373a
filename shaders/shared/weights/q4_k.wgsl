// Q4_K matrix: super-blocks of eight blocks, value = d * scale * q - dmin * minimum with nibbles q.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec4<u32>>; // [super-blocks]

fn weights_open(block: u32) -> weights_Block {
    let affine = weights_affine(weights_scales[block / 8u], block % 8u);
    return weights_Block(weights_nibbles(block), affine.x, affine.y);
}
