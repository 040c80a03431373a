// Q5_K matrix: super-blocks of eight blocks, value = d * scale * q - dmin * minimum with 5-bit quants
// q. Quants: the nibbles of eight blocks, then eight words of fifth bits.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [super-blocks, 10]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec4<u32>>; // [super-blocks]

fn weights_open(block: u32) -> weights_Block {
    let superblock = block / 8u;
    let run = block % 8u;
    let affine = weights_affine(weights_scales[superblock], run);
    let nibbles = weights_nibbles(superblock * 10u + run);
    let high = weights_quants[superblock * 10u + 8u + run / 4u][run % 4u];
    return weights_Block(nibbles, high, affine.x, affine.y);
}
