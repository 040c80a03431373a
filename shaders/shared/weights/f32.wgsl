// F32 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<f32>>; // [rows * blocks, 8]
