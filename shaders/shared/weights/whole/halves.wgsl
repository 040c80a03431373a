// Blocks of 32 elements of 16 bits each. The type's module defines `weights_quants` and `weights_unpack`, which
// converts the two words of four elements.

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var i = 0u; i < 4u; i++) { // unrolled
        let q = weights_quants[block * 4u + i];
        (*out)[i * 2u] = weights_unpack(q.x, q.y);
        (*out)[i * 2u + 1u] = weights_unpack(q.z, q.w);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 4u; i++) { // unrolled
        let q = weights_quants[block * 4u + i];
        sum += dot(weights_unpack(q.x, q.y), (*x)[i * 2u]);
        sum += dot(weights_unpack(q.z, q.w), (*x)[i * 2u + 1u]);
    }
    return sum;
}
