// Dot products of quarters of blocks, for the types of whole/blocks.wgsl. Lane `quarter` of four multiplies weights
// 4 * quarter to 4 * quarter + 3 of each half of a block.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 2>>) -> f32 {
    let opened = weights_open(block);
    return dot(weights_four(opened, 0u, quarter), (*x)[0]) + dot(weights_four(opened, 1u, quarter), (*x)[1]);
}
