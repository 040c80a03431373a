// Q3_K matrix: super-blocks of eight blocks in groups of 16 elements, value = d * (scale - 32) * (q -
// 4) with 3-bit quants q and 6-bit scales. Quants: lower bits as in q2_k.wgsl in two words, then one
// word whose bit i of byte j is the upper bit of element 4 * i + j. Scales: 12 bytes as in the file,
// an f16 d and two bytes of padding.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<u32>; // [rows * blocks, 3]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec4<u32>>; // [super-blocks]

struct weights_Block {
    low: vec2<u32>,
    high: u32,
    factors: vec2<f32>,
}

fn weights_open(block: u32) -> weights_Block {
    let scales = weights_scales[block / 8u];
    // The lower four bits of scale g are a nibble of byte g % 8, low for scales 0 to 7 and high for 8 to 15. Its
    // upper two bits are bits 2 * (g / 4) of byte g % 4 of the third word.
    let word = block % 8u / 2u;
    let shift = block % 2u * 16u;
    let low = select(scales.x, scales.y, word % 2u == 1u) >> (shift + word / 2u * 4u);
    let high = scales.z >> (shift + word * 2u);
    let sixes = (vec2<u32>(low, low >> 8u) & vec2<u32>(15u)) | ((vec2<u32>(high, high >> 8u) & vec2<u32>(3u)) << vec2<u32>(4u));
    let factors = unpack2x16float(scales.w).x * (vec2<f32>(vec2<i32>(sixes)) - 32.0);
    let at = block * 3u;
    let quants = vec2<u32>(weights_quants[at], weights_quants[at + 1u]);
    return weights_Block(quants, weights_quants[at + 2u], factors);
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let low = (block.low[half] >> (word * 2u)) & 0x03030303u;
    let high = ((block.high >> (half * 4u + word)) & 0x01010101u) << 2u;
    return block.factors[half] * (weights_bytes(low | high) - 4.0);
}
