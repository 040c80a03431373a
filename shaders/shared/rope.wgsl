// Heads of Q, K and V of a step's tokens. Q and K are normalized by the module that defines head_scale, and
// their first ROPE_DIMS elements are rotated by the token's position. Heads are numbered consecutively: first
// those of Q, then K, then V. A vector is four elements of a head.
@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_STRIDE / 4], from Q_AT on
@group(0) @binding(B_k) var<storage, read> k: array<vec4<f32>>; // [tokens, K_STRIDE / 4], from K_AT on
@group(0) @binding(B_v) var<storage, read> v: array<vec4<f32>>; // [tokens, V_STRIDE / 4], from V_AT on
@group(0) @binding(B_turns) var<storage, read> turns: array<u32>; // [ROPE_DIMS / 2], 2^-32 turns per position; BY_PARTS as many parts follow

const RADIANS: f32 = 1.4629180e-9; // of 2^-32 turns
const VECTORS: u32 = HEAD_DIM / 4u; // of one head
// Elements that are rotated. At least one vector, because compilers reject a remainder by 0 even in dead code.
const TURNED: u32 = max(ROPE_DIMS, 4u);
const HALF: u32 = TURNED / 2u;

// A vector of a head before the rotation.
fn head_load(token: u32, head: u32, vector: u32) -> vec4<f32> {
    if (head < HEADS) {
        return q[(token * Q_STRIDE + Q_AT) / 4u + head * VECTORS + vector];
    }
    if (head < HEADS + KV_HEADS) {
        return k[(token * K_STRIDE + K_AT) / 4u + (head - HEADS) * VECTORS + vector];
    }
    return v[(token * V_STRIDE + V_AT) / 4u + (head - HEADS - KV_HEADS) * VECTORS + vector];
}

fn head_normed(token: u32, head: u32, vector: u32, scale: f32) -> vec4<f32> {
    let scaled = head_load(token, head, vector) * scale;
    if (NORM_LAST) {
        return scaled;
    }
    return scaled * head_weight(head, vector);
}

// The rotary position of a pair.
fn turned_by(token: u32, pair: u32, position: u32) -> u32 {
    if (BY_PARTS) {
        return row_rotary(token, turns[HALF + pair]);
    }
    return position;
}

// A vector of Q or K, normalized and rotated; NORM_LAST multiplies by the weights of the norm after the rotation.
fn head_rotated(token: u32, head: u32, vector: u32, position: u32) -> vec4<f32> {
    let turned = head_turned(token, head, vector, position);
    if (NORM_LAST) {
        return turned * head_weight(head, vector);
    }
    return turned;
}

fn head_turned(token: u32, head: u32, vector: u32, position: u32) -> vec4<f32> {
    let scale = head_scale(token, head);
    let own = head_normed(token, head, vector, scale);
    if (vector * 4u >= ROPE_DIMS) {
        return own;
    }
    // The other elements of the pairs: the neighbours, or ROPE_DIMS / 2 apart (NEOX).
    var partners = own.yxwz;
    if (NEOX && HALF % 4u == 0u) {
        partners = head_normed(token, head, (vector + HALF / 4u) % (TURNED / 4u), scale);
    } else if (NEOX) {
        for (var i = 0u; i < 4u; i++) {
            let element = (vector * 4u + i + HALF) % TURNED;
            partners[i] = head_normed(token, head, element / 4u, scale)[element % 4u];
        }
    }
    var radians: vec4<f32>;
    var signs: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { // unrolled
        let element = vector * 4u + i;
        let pair = select(element / 2u, element % HALF, NEOX);
        let is_second = select(element % 2u == 1u, element >= HALF, NEOX);
        // Whole turns are dropped by overflow, so the angle is as exact at the end of a long context as at its start.
        radians[i] = f32(bitcast<i32>(turned_by(token, pair, position) * turns[pair])) * RADIANS;
        signs[i] = select(-1.0, 1.0, is_second);
    }
    return MAGNITUDE * (own * cos(radians) + signs * partners * sin(radians));
}

// The factor of a query after the rotation, which may grow with its position.
fn query_factor(position: u32) -> f32 {
    if (TEMPERATURE_GROWTH == 0.0) {
        return Q_SCALE;
    }
    let steps = (position + TEMPERATURE_OFFSET) / TEMPERATURE_TOKENS;
    return Q_SCALE * (1.0 + TEMPERATURE_GROWTH * log(f32(1u + steps)));
}

// A vector of V; NORM_VALUES normalizes it without weights.
fn value_load(token: u32, head: u32, vector: u32) -> vec4<f32> {
    let own = head_load(token, head, vector);
    if (NORM_VALUES) {
        return own * head_scale(token, head);
    }
    return own;
}
