// Q8_0 matrix: 32 signed bytes and one f16 scale per block; quants and scales lie apart.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 2]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The 32 weights of a block, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    let d = weights_scale(block);
    for (var half = 0u; half < 2u; half++) {
        let q = weights_quants[block * 2u + half];
        for (var i = 0u; i < 4u; i++) {
            (*out)[half * 4u + i] = d * vec4<f32>(unpack4xI8(q[i]));
        }
    }
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    let q0 = weights_quants[block * 2u];
    let q1 = weights_quants[block * 2u + 1u];
    var sum = dot(vec4<f32>(unpack4xI8(q0.x)), (*x)[0]);
    sum += dot(vec4<f32>(unpack4xI8(q0.y)), (*x)[1]);
    sum += dot(vec4<f32>(unpack4xI8(q0.z)), (*x)[2]);
    sum += dot(vec4<f32>(unpack4xI8(q0.w)), (*x)[3]);
    sum += dot(vec4<f32>(unpack4xI8(q1.x)), (*x)[4]);
    sum += dot(vec4<f32>(unpack4xI8(q1.y)), (*x)[5]);
    sum += dot(vec4<f32>(unpack4xI8(q1.z)), (*x)[6]);
    sum += dot(vec4<f32>(unpack4xI8(q1.w)), (*x)[7]);
    return weights_scale(block) * sum;
}
