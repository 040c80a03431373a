// NVFP4 matrix: groups of 16 elements, value = factor * scale * float with nibbles (see parts/e2m1.wgsl), an E4M3 scale
// without a sign per group and an f32 factor per row. Byte j of a block holds element j in its low nibble and element j + 16 in its high one.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [rows, 1 + blocks / 2], the factor, then four scales each

struct weights_Block {
    nibbles: weights_Nibbles,
    factors: vec2<f32>,
}

// Half of the scale in the lowest byte, since weights_four doubles the values.
fn weights_half_scale(bits: u32) -> f32 {
    let scale = bits & 127u;
    return select(bitcast<f32>((scale << 20u) + (119u << 23u)), f32(i32(scale)) / 1024.0, scale < 8u);
}

fn weights_open(block: u32) -> weights_Block {
    // Rows have an even number of blocks.
    let row = block / BLOCKS;
    let factor = bitcast<f32>(weights_scales[row * (BLOCKS / 2u + 1u)]);
    let scales = weights_scales[block / 2u + row + 1u] >> (block % 2u * 16u);
    let halves = vec2<f32>(weights_half_scale(scales), weights_half_scale(scales >> 8u));
    return weights_Block(weights_nibbles(block), factor * halves);
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_four_nibbles(block.nibbles, half, word);
    return block.factors[half] * weights_doubled(weights_bytes(q));
}
