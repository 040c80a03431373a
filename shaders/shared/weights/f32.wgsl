// F32 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<f32>>; // [rows * blocks, 8]

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var i = 0u; i < 8u; i++) { // unrolled
        (*out)[i] = weights_quants[block * 8u + i];
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) { // unrolled
        sum += dot(weights_quants[block * 8u + i], (*x)[i]);
    }
    return sum;
}
