// Loads and dot products of whole blocks of F32.

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
