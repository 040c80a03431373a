// Q8_0 matrix: value = d * q with 32 signed bytes q and an f16 d per block.
// A kernel has this module once per matrix, with `weights` replaced by the name of the matrix.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [rows * blocks, 2]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // two f16 per word

fn weights_scale(block: u32) -> f32 {
    return unpack2x16float(weights_scales[block >> 1u])[block & 1u];
}

// The signed bytes of a word. Shifting them one by one is faster than unpack4xI8 on software adapters.
fn weights_bytes(q: u32) -> vec4<f32> {
    let a = vec4<i32>(i32(q << 24u), i32(q << 16u), i32(q << 8u), i32(q));
    return vec4<f32>(a >> vec4<u32>(24u));
}
