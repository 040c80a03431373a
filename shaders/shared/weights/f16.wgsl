// F16 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 4]

// Four f16 of two words.
fn weights_unpack(a: u32, b: u32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(a), unpack2x16float(b));
}
