// F16 matrix in blocks of 32 elements; rows are zero-padded to whole blocks.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 4]

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var i = 0u; i < 4u; i++) { // unrolled
        let q = weights_quants[block * 4u + i];
        (*out)[i * 2u] = vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y));
        (*out)[i * 2u + 1u] = vec4<f32>(unpack2x16float(q.z), unpack2x16float(q.w));
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < 4u; i++) { // unrolled
        let q = weights_quants[block * 4u + i];
        sum += dot(vec4<f32>(unpack2x16float(q.x), unpack2x16float(q.y)), (*x)[i * 2u]);
        sum += dot(vec4<f32>(unpack2x16float(q.z), unpack2x16float(q.w)), (*x)[i * 2u + 1u]);
    }
    return sum;
}
