// BF16 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 4]

// Four bfloat16 of two words: a bfloat16 is the upper half of an f32.
fn weights_unpack(a: u32, b: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}
