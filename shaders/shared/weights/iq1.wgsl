// IQ1_S or IQ1_M matrix: super-blocks of eight blocks in groups of 16 elements, value = d * (2 * scale + 1) * (q - 1 + shift)
// with 2-bit quants q and shifts of an eighth up or down for eight elements. Bits 2 * i of byte j of a block's word k are
// element 16 * k + 4 * i + j. Scales: four bits for each group, three of its scale and one that is 1 if its first eight
// elements are shifted down; an f16 d; a bit for the shift of the other eight of each group.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec2<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [super-blocks, 3]

struct weights_Block {
    quants: vec2<u32>,
    factors: vec2<f32>,
    offsets: vec4<f32>,
}

fn weights_open(block: u32) -> weights_Block {
    let at = block / 8u * 3u;
    let run = block % 8u;
    let groups = weights_scales[at + run / 4u] >> (run % 4u * 8u);
    let last = weights_scales[at + 2u];
    let others = last >> (16u + run * 2u);
    let d = unpack2x16float(last).x;
    let factors = d * (vec2<f32>(vec2<i32>(i32(groups & 7u), i32((groups >> 4u) & 7u))) * 2.0 + 1.0);
    let down = vec4<u32>(groups >> 3u, others, groups >> 7u, others >> 1u) & vec4<u32>(1u);
    return weights_Block(weights_quants[block], factors, -0.875 - 0.25 * vec4<f32>(down));
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_bytes((block.quants[half] >> (word * 2u)) & 0x03030303u);
    return block.factors[half] * (q + block.offsets[half * 2u + word / 2u]);
}
