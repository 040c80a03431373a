// RMS norm of each head of Q and K, with weights.
@group(0) @binding(B_norm) var<storage, read> norm: array<vec4<f32>>; // [q|k, HEAD_DIM / 4]

fn head_scale(token: u32, head: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < VECTORS; i++) {
        let own = head_load(token, head, i);
        sum += dot(own, own);
    }
    return inverseSqrt(sum / f32(HEAD_DIM) + EPS);
}

fn head_weight(head: u32, vector: u32) -> vec4<f32> {
    return norm[select(0u, VECTORS, head >= HEADS) + vector];
}
