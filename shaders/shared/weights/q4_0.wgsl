// Q4_0 matrix: 32 nibbles (value - 8) and one f16 scale per block; quants and scales lie apart.
// Byte j of a block holds element j in its low nibble and element j + 16 in its high one.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The low nibbles of a word's bytes, minus 8. Byte by byte and through signed integers: the quickest
// form on software adapters, no slower elsewhere.
fn weights_nibbles(q: u32) -> vec4<f32> {
    let a = vec4<i32>(i32(q & 15u), i32((q >> 8u) & 15u), i32((q >> 16u) & 15u), i32((q >> 24u) & 15u));
    return vec4<f32>(a) - 8.0;
}

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let d = weights_scale(block);
    let q = weights_quants[block];
    for (var i = 0u; i < 4u; i++) { // unrolled
        (*out)[i] = d * weights_nibbles(q[i]);
        (*out)[i + 4u] = d * weights_nibbles(q[i] >> 4u);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let q = weights_quants[block];
    var sum = 0.0;
    for (var i = 0u; i < 4u; i++) { // unrolled
        sum += dot(weights_nibbles(q[i]), (*x)[i]);
        sum += dot(weights_nibbles(q[i] >> 4u), (*x)[i + 4u]);
    }
    return weights_scale(block) * sum;
}
