// Q6_K matrix: super-blocks of 256 elements in groups of 16, value = d * scale * (q - 32).
// Quants as in the file: 128 bytes of low nibbles, then 64 of upper bits; within each half of a
// super-block four runs of 32 elements share the upper bits' bytes, and the last two runs are the
// upper nibbles of the first two. Scales: 16 signed bytes, then an f16 d, five words in all.
// Written for the name `weights`; instantiated under each matrix's name.
@group(0) @binding(B_weights_quants) var<storage, read> weights_quants: array<vec4<u32>>; // [super-blocks, 12]
@group(0) @binding(B_weights_scales) var<storage, read> weights_scales: array<u32>; // [super-blocks, 5]

// Factor of one group of 16: `group` 0 or 1 of a run of 32.
fn weights_factor(block: u32, group: u32) -> f32 {
    let at = block / 8u * 5u;
    let scale = (block % 8u) * 2u + group;
    let d = unpack2x16float(weights_scales[at + 4u]).x;
    return d * f32(unpack4xI8(weights_scales[at + scale / 4u])[scale % 4u]);
}

// The bytes of a word, minus 32; one by one as in q4_0.wgsl.
fn weights_sixes(q: u32) -> vec4<f32> {
    let a = vec4<i32>(i32(q & 63u), i32((q >> 8u) & 63u), i32((q >> 16u) & 63u), i32(q >> 24u));
    return vec4<f32>(a) - 32.0;
}

// Quants of 16 elements of a run of 32, a byte each.
fn weights_quants_of(block: u32, group: u32) -> vec4<u32> {
    let run = block % 4u;
    let half = (block % 8u) / 4u;
    let at = block / 8u * 12u;
    let low = weights_quants[at + half * 4u + (run % 2u) * 2u + group] >> vec4<u32>(run / 2u * 4u);
    let high = weights_quants[at + 8u + half * 2u + group] >> vec4<u32>(run * 2u);
    return (low & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
}

// The 32 weights of a run, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var group = 0u; group < 2u; group++) { // unrolled
        let factor = weights_factor(block, group);
        let q = weights_quants_of(block, group);
        for (var i = 0u; i < 4u; i++) { // unrolled
            (*out)[group * 4u + i] = factor * weights_sixes(q[i]);
        }
    }
}

// Dot product of a run with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var sum = 0.0;
    for (var group = 0u; group < 2u; group++) { // unrolled
        let q = weights_quants_of(block, group);
        var part = 0.0;
        for (var i = 0u; i < 4u; i++) { // unrolled
            part += dot(weights_sixes(q[i]), (*x)[group * 4u + i]);
        }
        sum += weights_factor(block, group) * part;
    }
    return sum;
}
