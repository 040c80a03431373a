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

// Quants of 16 elements of a run of 32, minus 32.
fn weights_quants_of(block: u32, group: u32) -> array<vec4<f32>, 4> {
    let run = block % 4u;
    let half = (block % 8u) / 4u;
    let at = block / 8u * 12u;
    let low = weights_quants[at + half * 4u + (run % 2u) * 2u + group] >> vec4<u32>(run / 2u * 4u);
    let high = weights_quants[at + 8u + half * 2u + group] >> vec4<u32>(run * 2u);
    let q = (low & vec4<u32>(0x0f0f0f0fu)) | ((high & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    return array<vec4<f32>, 4>(
        vec4<f32>(unpack4xU8(q.x)) - 32.0,
        vec4<f32>(unpack4xU8(q.y)) - 32.0,
        vec4<f32>(unpack4xU8(q.z)) - 32.0,
        vec4<f32>(unpack4xU8(q.w)) - 32.0,
    );
}

// The 32 weights of a run, as eight vectors in element order.
fn weights_load(block: u32, out: ptr<function, array<vec4<f32>, 8>>) {
    for (var group = 0u; group < 2u; group++) {
        let factor = weights_factor(block, group);
        let q = weights_quants_of(block, group);
        (*out)[group * 4u] = factor * q[0];
        (*out)[group * 4u + 1u] = factor * q[1];
        (*out)[group * 4u + 2u] = factor * q[2];
        (*out)[group * 4u + 3u] = factor * q[3];
    }
}

// Dot product of a run with 32 inputs.
fn weights_dot(block: u32, x: ptr<function, array<vec4<f32>, 8>>) -> f32 {
    var sum = 0.0;
    for (var group = 0u; group < 2u; group++) {
        let q = weights_quants_of(block, group);
        var part = dot(q[0], (*x)[group * 4u]);
        part += dot(q[1], (*x)[group * 4u + 1u]);
        part += dot(q[2], (*x)[group * 4u + 2u]);
        part += dot(q[3], (*x)[group * 4u + 3u]);
        sum += weights_factor(block, group) * part;
    }
    return sum;
}
