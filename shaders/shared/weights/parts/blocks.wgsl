// Loads and dot products of blocks of 32 weights, for types whose modules define `weights_Block`,
// `weights_open` (reads a block) and `weights_four` (decodes four of its weights).

// The bytes of a word. Converting them one by one from signed integers is fastest on software adapters and
// not slower on others.
fn weights_bytes(q: u32) -> vec4<f32> {
    let a = vec4<i32>(i32(q & 255u), i32((q >> 8u) & 255u), i32((q >> 16u) & 255u), i32(q >> 24u));
    return vec4<f32>(a);
}

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let opened = weights_open(block);
    for (var i = 0u; i < 8u; i++) { // unrolled
        (*out)[i] = weights_four(opened, i);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let opened = weights_open(block);
    var sum = 0.0;
    for (var i = 0u; i < 8u; i++) { // unrolled
        sum += dot(weights_four(opened, i), (*x)[i]);
    }
    return sum;
}
