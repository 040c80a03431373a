// Loads and dot products of whole blocks of Q8_0.

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let d = weights_scale(block);
    let q0 = weights_quants[block * 2u];
    let q1 = weights_quants[block * 2u + 1u];
    for (var i = 0u; i < 4u; i++) { // unrolled
        (*out)[i] = d * weights_bytes(q0[i]);
        (*out)[i + 4u] = d * weights_bytes(q1[i]);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let q0 = weights_quants[block * 2u];
    let q1 = weights_quants[block * 2u + 1u];
    var sum = 0.0;
    for (var i = 0u; i < 4u; i++) { // unrolled
        sum += dot(weights_bytes(q0[i]), (*x)[i]);
        sum += dot(weights_bytes(q1[i]), (*x)[i + 4u]);
    }
    return weights_scale(block) * sum;
}
