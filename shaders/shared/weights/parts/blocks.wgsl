// Blocks of 32 weights that a format opens once and that give four weights at a time: the format's
// modules have `weights_Block`, `weights_open` and `weights_four`.

// The bytes of a word. One by one and through signed integers: the quickest form on software
// adapters, no slower elsewhere.
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
