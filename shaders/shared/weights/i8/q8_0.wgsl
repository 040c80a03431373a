// Q8_0 matrix (see ../q8_0.wgsl) for products of bytes: its quants are used as they are.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 2]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The 32 weights of a block.
fn weights_load(block: u32, out: ptr<function, Block>) {
    let q0 = weights_quants[block * 2u];
    let q1 = weights_quants[block * 2u + 1u];
    for (var i = 0u; i < 4u; i++) { // unrolled
        (*out).words[i] = q0[i];
        (*out).words[i + 4u] = q1[i];
    }
    (*out).scale = weights_scale(block);
}

// Dot product of a block with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, Block>) -> f32 {
    let q0 = weights_quants[block * 2u];
    let q1 = weights_quants[block * 2u + 1u];
    var sum = 0;
    for (var i = 0u; i < 4u; i++) { // unrolled
        sum += dot4I8Packed(q0[i], (*x).words[i]);
        sum += dot4I8Packed(q1[i], (*x).words[i + 4u]);
    }
    return weights_scale(block) * (*x).scale * f32(sum);
}
