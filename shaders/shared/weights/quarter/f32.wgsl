// Dot products of quarters of blocks (see quarter/blocks.wgsl) of F32.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 2>>) -> f32 {
    let at = block * 8u + quarter;
    return dot(weights_quants[at], (*x)[0]) + dot(weights_quants[at + 4u], (*x)[1]);
}
