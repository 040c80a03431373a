// Dot products of quarters of blocks (see quarter/blocks.wgsl) of Q8_0. Only the words of the quarter are read.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 2>>) -> f32 {
    let q0 = weights_quants[block * 2u][quarter];
    let q1 = weights_quants[block * 2u + 1u][quarter];
    return weights_scale(block) * (dot(weights_bytes(q0), (*x)[0]) + dot(weights_bytes(q1), (*x)[1]));
}
