// Loads and dot products of whole blocks of 32 weights, for types whose modules define `weights_Block`,
// `weights_open` (reads a block) and `weights_four` (decodes four of its weights).

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let opened = weights_open(block);
    for (var i = 0u; i < 8u; i++) { // unrolled
        (*out)[i] = weights_four(opened, i / 4u, i % 4u);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let opened = weights_open(block);
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) { // unrolled
        sum += dot(weights_four(opened, i / 4u, i % 4u), (*x)[i]);
    }
    return sum;
}
