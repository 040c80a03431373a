// Q4_0 matrix (see ../q4_0.wgsl) for products of bytes: one operation turns four nibbles of a word into bytes.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The bytes of a word, each below 16, minus 8. The top bit of each byte prevents borrowing from the next byte.
fn weights_minus_8(nibbles: u32) -> u32 {
    return ((nibbles | 0x80808080u) - 0x08080808u) ^ 0x80808080u;
}

// The 32 weights of a block.
fn weights_load(block: u32, out: ptr<function, Block>) {
    let q = weights_quants[block];
    for (var i = 0u; i < 4u; i++) { // unrolled
        (*out).words[i] = weights_minus_8(q[i] & 0x0f0f0f0fu);
        (*out).words[i + 4u] = weights_minus_8((q[i] >> 4u) & 0x0f0f0f0fu);
    }
    (*out).scale = weights_scale(block);
}

// Dot product of a block with 32 inputs. The subtraction of 8 is applied once, to the sum of the inputs.
fn weights_dot(block: u32, x: ptr<function, Block>) -> f32 {
    let q = weights_quants[block];
    var sum = -8 * (*x).sum;
    for (var i = 0u; i < 4u; i++) { // unrolled
        sum += dot4I8Packed(q[i] & 0x0f0f0f0fu, (*x).words[i]);
        sum += dot4I8Packed((q[i] >> 4u) & 0x0f0f0f0fu, (*x).words[i + 4u]);
    }
    return weights_scale(block) * (*x).scale * f32(sum);
}
