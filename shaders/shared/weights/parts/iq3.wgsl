// IQ3_XXS or IQ3_S matrix: super-blocks of eight blocks, value = d * (2 * scale + 1) * level with nibbles that number the
// levels with signs in ascending order; the type's module has `weights_level`. Byte j holds element j in its low nibble and
// element j + 16 in its high one. Scales: four bits for each block, an f16 d and two bytes of padding.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<vec2<u32>>; // [super-blocks]

struct weights_Block {
    nibbles: weights_Nibbles,
    factor: f32,
}

fn weights_open(block: u32) -> weights_Block {
    let scales = weights_scales[block / 8u];
    let scale = f32(i32((scales.x >> (block % 8u * 4u)) & 15u));
    return weights_Block(weights_nibbles(block), unpack2x16float(scales.y).x * (2.0 * scale + 1.0));
}

// Weights 16 * half + 4 * word and the next three.
fn weights_four(block: weights_Block, half: u32, word: u32) -> vec4<f32> {
    let q = weights_bytes(weights_four_nibbles(block.nibbles, half, word));
    return block.factor * weights_level(2.0 * q - 15.0);
}
