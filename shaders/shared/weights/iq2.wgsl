// IQ2_XXS, IQ2_XS or IQ2_S matrix: super-blocks of eight blocks in groups of 16 elements, value = d / 8 * (2 * scale + 1) *
// level with the levels 8, 25 and 43 and a sign. Quants: the numbers of the levels in two words (bits 2 * i of byte j of word
// k are element 16 * k + 4 * i + j), then one word whose bit i of byte j is the sign of element 4 * i + j. Scales: four bits
// for each group, an f16 d and two bytes of padding.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<u32>; // [rows * blocks, 3]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [super-blocks, 3]

struct weights_Block {
    levels: vec2<u32>,
    signs: u32,
    factors: vec2<f32>,
}

fn weights_open(block: u32) -> weights_Block {
    let at = block / 8u * 3u;
    let run = block % 8u;
    let scales = weights_scales[at + run / 4u] >> (run % 4u * 8u);
    let d = unpack2x16float(weights_scales[at + 2u]).x;
    let factors = d * (vec2<f32>(vec2<i32>(i32(scales & 15u), i32((scales >> 4u) & 15u))) * 0.25 + 0.125);
    let levels = vec2<u32>(weights_quants[block * 3u], weights_quants[block * 3u + 1u]);
    return weights_Block(levels, weights_quants[block * 3u + 2u], factors);
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let level = weights_bytes((block.levels[half] >> (word * 2u)) & 0x03030303u);
    let signs = 1.0 - 2.0 * weights_bytes((block.signs >> (half * 4u + word)) & 0x01010101u);
    return block.factors[half] * signs * (level * (0.5 * level + 16.5) + 8.0);
}
