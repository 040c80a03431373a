// BF16 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 4]

// Four bfloat16 of two words: a bfloat16 is the upper half of an f32.
fn weights_unpack(a: u32, b: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

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
