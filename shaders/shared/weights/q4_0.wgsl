// Q4_0 matrix: 32 nibbles (value - 8) and one f16 scale per block; quants and scales lie apart.
// Byte j of a block holds element j in its low nibble and element j + 16 in its high one.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let d = weights_scale(block);
    let q = weights_quants[block];
    for (var i = 0u; i < 4u; i++) {
        (*out)[i] = d * (vec4<f32>(unpack4xU8(q[i] & 0x0f0f0f0fu)) - 8.0);
        (*out)[i + 4u] = d * (vec4<f32>(unpack4xU8((q[i] >> 4u) & 0x0f0f0f0fu)) - 8.0);
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let q = weights_quants[block];
    let lo = q & vec4<u32>(0x0f0f0f0fu);
    let hi = (q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
    var sum = dot(vec4<f32>(unpack4xU8(lo.x)) - 8.0, (*x)[0]);
    sum += dot(vec4<f32>(unpack4xU8(lo.y)) - 8.0, (*x)[1]);
    sum += dot(vec4<f32>(unpack4xU8(lo.z)) - 8.0, (*x)[2]);
    sum += dot(vec4<f32>(unpack4xU8(lo.w)) - 8.0, (*x)[3]);
    sum += dot(vec4<f32>(unpack4xU8(hi.x)) - 8.0, (*x)[4]);
    sum += dot(vec4<f32>(unpack4xU8(hi.y)) - 8.0, (*x)[5]);
    sum += dot(vec4<f32>(unpack4xU8(hi.z)) - 8.0, (*x)[6]);
    sum += dot(vec4<f32>(unpack4xU8(hi.w)) - 8.0, (*x)[7]);
    return weights_scale(block) * sum;
}
