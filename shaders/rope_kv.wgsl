// Rotates queries and keys by their position and writes keys and values to the KV memory. Queries
// leave scaled by 1 / sqrt(HEAD_DIM). One lane per pair of elements of q, k or v of one token.
@group(0) @binding(B_q) var<storage, read> q: array<f32>; // [tokens, Q_STRIDE], from column Q_AT on
@group(0) @binding(B_k) var<storage, read> k: array<f32>; // [tokens, K_STRIDE], from column K_AT on
@group(0) @binding(B_v) var<storage, read> v: array<f32>; // [tokens, V_STRIDE], from column V_AT on
@group(0) @binding(B_freqs) var<storage, read> freqs: array<f32>; // [HEAD_DIM / 2], radians per position
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, Q_DIM]
@group(0) @binding(B_kv) var<storage, read_write> kv: array<f32>; // [page, k|v, page token, KV_DIM]

const TAU: f32 = 6.2831853;

// The two elements of pair `pair` of a row of heads: neighbours, or halves apart (NEOX).
fn pair_elements(pair: u32) -> vec2<u32> {
    let head = pair / (HEAD_DIM / 2u);
    let i = pair % (HEAD_DIM / 2u);
    if (NEOX) {
        return vec2<u32>(head * HEAD_DIM + i, head * HEAD_DIM + i + HEAD_DIM / 2u);
    }
    return vec2<u32>(head * HEAD_DIM + 2u * i, head * HEAD_DIM + 2u * i + 1u);
}

fn rotate(a: f32, b: f32, pair: u32, position: u32) -> vec2<f32> {
    // Reduced to one turn: sin and cos of large arguments are imprecise on many GPUs.
    let radians = f32(position) * freqs[pair % (HEAD_DIM / 2u)];
    let angle = radians - TAU * floor(radians / TAU);
    let c = cos(angle);
    let s = sin(angle);
    return vec2<f32>(a * c - b * s, a * s + b * c);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let pairs = Q_DIM / 2u + KV_DIM;
    let token = global.x / pairs;
    if (token >= step_tokens()) {
        return;
    }
    let position = row_position(token);
    let table = row_table(token);
    var pair = global.x % pairs;
    if (pair < Q_DIM / 2u) {
        let e = pair_elements(pair);
        let row = token * Q_STRIDE + Q_AT;
        let rotated = rotate(q[row + e.x], q[row + e.y], pair, position) * inverseSqrt(f32(HEAD_DIM));
        out[token * Q_DIM + e.x] = rotated.x;
        out[token * Q_DIM + e.y] = rotated.y;
        return;
    }
    pair -= Q_DIM / 2u;
    if (pair < KV_DIM / 2u) {
        let e = pair_elements(pair);
        let row = token * K_STRIDE + K_AT;
        let rotated = rotate(k[row + e.x], k[row + e.y], pair, position);
        let at = kv_row(table, position, 0u);
        kv[at + e.x] = rotated.x;
        kv[at + e.y] = rotated.y;
        return;
    }
    pair -= KV_DIM / 2u;
    let row = token * V_STRIDE + V_AT;
    let at = kv_row(table, position, 1u);
    kv[at + 2u * pair] = v[row + 2u * pair];
    kv[at + 2u * pair + 1u] = v[row + 2u * pair + 1u];
}
