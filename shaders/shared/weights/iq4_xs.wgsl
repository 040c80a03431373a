// IQ4_XS matrix: super-blocks of eight blocks, value = d * (scale - 32) * table[q] with nibbles q.
// Scales: an f16 d, the upper two bits of each block's scale, then the lower four.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec2<u32>>; // [super-blocks]

fn weights_open(block: u32) -> weights_Block {
    let scales = weights_scales[block / 8u];
    let run = block % 8u;
    let low = (scales.y >> (run * 4u)) & 15u;
    let high = (scales.x >> (16u + run * 2u)) & 3u;
    let factor = unpack2x16float(scales.x).x * (f32(i32(low | (high << 4u))) - 32.0);
    return weights_Block(weights_nibbles(block), factor);
}
