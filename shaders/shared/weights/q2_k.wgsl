// Q2_K matrix: super-blocks of eight blocks in groups of 16 elements, value = d * scale * q - dmin *
// minimum with 2-bit quants q. Bits 2 * i of byte j of a block's word k are element 16 * k + 4 * i + j.
// Scales: a byte per group with the scale in its low nibble and the minimum in its high one, then an
// f16 d and an f16 dmin.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec2<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [super-blocks, 5]

struct weights_Block {
    quants: vec2<u32>,
    factors: vec2<f32>,
    offsets: vec2<f32>,
}

fn weights_open(block: u32) -> weights_Block {
    let at = block / 8u * 5u;
    let scales = weights_scales[at + block % 8u / 2u] >> (block % 2u * 16u);
    let d = unpack2x16float(weights_scales[at + 4u]);
    let factors = d.x * vec2<f32>(vec2<i32>(i32(scales & 15u), i32((scales >> 8u) & 15u)));
    let minima = d.y * vec2<f32>(vec2<i32>(i32((scales >> 4u) & 15u), i32((scales >> 12u) & 15u)));
    return weights_Block(weights_quants[block], factors, -minima);
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = (block.quants[half] >> (word * 2u)) & 0x03030303u;
    return block.factors[half] * weights_bytes(q) + block.offsets[half];
}
