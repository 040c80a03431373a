// Query, key and value heads of a step's tokens, rotated by their positions. Heads count on: those of
// the queries, of the keys, of the values. A vector is four elements of a head.
@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_STRIDE / 4], from Q_AT on
@group(0) @binding(B_k) var<storage, read> k: array<vec4<f32>>; // [tokens, K_STRIDE / 4], from K_AT on
@group(0) @binding(B_v) var<storage, read> v: array<vec4<f32>>; // [tokens, V_STRIDE / 4], from V_AT on
@group(0) @binding(B_freqs) var<storage, read> freqs: array<f32>; // [HEAD_DIM / 2], radians per position

const TAU: f32 = 6.2831853;
const HALF: u32 = HEAD_DIM / 2u;
const VECTORS: u32 = HEAD_DIM / 4u; // of one head

// A head's vector as it came.
fn head_load(token: u32, head: u32, vector: u32) -> vec4<f32> {
    if (head < HEADS) {
        return q[(token * Q_STRIDE + Q_AT) / 4u + head * VECTORS + vector];
    }
    if (head < HEADS + KV_HEADS) {
        return k[(token * K_STRIDE + K_AT) / 4u + (head - HEADS) * VECTORS + vector];
    }
    return v[(token * V_STRIDE + V_AT) / 4u + (head - HEADS - KV_HEADS) * VECTORS + vector];
}

// The other elements of the pairs of a vector's elements: half a head away (NEOX), or neighbours.
fn head_partners(token: u32, head: u32, vector: u32, own: vec4<f32>) -> vec4<f32> {
    if (!NEOX) {
        return own.yxwz;
    }
    if (HALF % 4u == 0u) {
        return head_load(token, head, (vector + HALF / 4u) % VECTORS);
    }
    var partners: vec4<f32>;
    for (var i = 0u; i < 4u; i++) {
        let element = (vector * 4u + i + HALF) % HEAD_DIM;
        partners[i] = head_load(token, head, element / 4u)[element % 4u];
    }
    return partners;
}

// A query's or key's vector, rotated.
fn head_rotated(token: u32, head: u32, vector: u32, position: u32) -> vec4<f32> {
    let own = head_load(token, head, vector);
    let partners = head_partners(token, head, vector, own);
    var radians: vec4<f32>;
    var signs: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { // unrolled
        let element = vector * 4u + i;
        let pair = select(element / 2u, element % HALF, NEOX);
        let is_second = select(element % 2u == 1u, element >= HALF, NEOX);
        radians[i] = f32(position) * freqs[pair];
        signs[i] = select(-1.0, 1.0, is_second);
    }
    // Reduced to one turn: sin and cos of large arguments are imprecise on many GPUs.
    let angle = radians - TAU * floor(radians / TAU);
    return own * cos(angle) + signs * partners * sin(angle);
}
