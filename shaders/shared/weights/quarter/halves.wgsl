// Dot products of quarters of blocks (see quarter/blocks.wgsl) of 32 elements of 16 bits each. The type's module defines
// `weights_quants` and `weights_unpack`, which converts the two words of four elements.

// Weights 16 * half + 4 * quarter and the next three.
fn weights_four(block: u32, half: u32) -> vec4<f32> {
    let eight = weights_quants[block * 4u + half * 2u + quarter / 2u];
    let four = select(eight.xy, eight.zw, quarter % 2u == 1u);
    return weights_unpack(four.x, four.y);
}

fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 2>>) -> f32 {
    return dot(weights_four(block, 0u), (*x)[0]) + dot(weights_four(block, 1u), (*x)[1]);
}
