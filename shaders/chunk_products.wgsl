// The effect of a chunk's tokens on each other in a recurrence, without its state: a workgroup per chunk and head. The change
// that a token makes, u[t], follows from its value v[t] and from what the state S before the chunk returns for its key:
//   u = T (v - key_factor * S k),  T = (1 + M)^-1 diag(share),  M[t, i] = share[t] * decay(i..t) * k[t] k[i] for i < t
// with DELTA, else u[t] = rate[t] * v[t]. Results are query_factor * S q + A u, A[t, i] = decay(i..t) * q[t] k[i] for i <= t.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, X_STRIDE]: queries, keys, values
@group(0) @binding(B_rates) var<storage, read> rates: array<f32>; // [tokens, RATE_STRIDE], a number per head
@group(0) @binding(B_shares) var<storage, read> shares: array<f32>; // [tokens, SHARE_STRIDE], a number per head, if DELTA
@group(0) @binding(B_heads) var<storage, read> heads: array<f32>; // [3, HEADS]: decay, bias of the rate, share of the value in the result
@group(0) @binding(B_products) var<storage, read_write> products: array<f32>; // [chunk, HEADS, PRODUCT_WORDS]: T, A, vectors

// Columns of keys and queries that are in workgroup memory at a time, in vectors.
const SLICE: u32 = 4u;
const SIDE: u32 = CHUNK / 4u;
// Decays below e^-64 are 0 in sums with anything else; differences of their sums stay finite and precise.
const LEAST_LOG: f32 = -64.0;

var<workgroup> keys: array<vec4<f32>, SLICE * CHUNK>; // [vector of columns, token]
var<workgroup> queries: array<vec4<f32>, SLICE * CHUNK>;
var<workgroup> logs: array<f32, CHUNK>; // logarithms of decays
var<workgroup> sums: array<f32, CHUNK>; // their sums up to each token
var<workgroup> weights: array<f32, CHUNK>; // shares, or rates
var<workgroup> squares: array<f32, 2u * CHUNK>; // of queries, then of keys; then the factors of both
var<workgroup> matrix: array<f32, CHUNK * CHUNK>; // M
var<workgroup> inverse: array<f32, CHUNK * CHUNK>; // (1 + M)^-1

fn softplus(v: f32) -> f32 {
    return max(v, 0.0) + log(1.0 + exp(-abs(v)));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup.x;
    let first = workgroup.y * CHUNK;
    let tokens = step_tokens();
    if (first >= tokens) {
        return;
    }
    let count = min(tokens - first, CHUNK);
    let key_head = select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, TILED);
    let token_lane = local / SIDE;
    let other_lane = local % SIDE;
    var of_keys: array<vec4<f32>, 4>; // tokens of the lane by others
    var of_queries: array<vec4<f32>, 4>;
    for (var t = 0u; t < 4u; t++) { // unrolled
        of_keys[t] = vec4<f32>(0.0);
        of_queries[t] = vec4<f32>(0.0);
    }
    var square = 0.0;
    for (var slice = 0u; slice < KEY_LEN / 4u; slice += SLICE) {
        for (var i = local; i < SLICE * CHUNK; i += WORKGROUP) {
            let token = i / SLICE;
            let column = i % SLICE;
            var key = vec4<f32>(0.0);
            var query = vec4<f32>(0.0);
            if (token < count) {
                let at = (first + token) * (X_STRIDE / 4u) + key_head * (KEY_LEN / 4u) + slice + column;
                key = x[at + K_AT / 4u];
                query = x[at + Q_AT / 4u];
            }
            keys[column * CHUNK + token] = key;
            queries[column * CHUNK + token] = query;
        }
        workgroupBarrier();
        for (var i = 0u; i < SLICE; i++) {
            let at = i * CHUNK;
            let others = mat4x4<f32>(
                keys[at + other_lane],
                keys[at + other_lane + SIDE],
                keys[at + other_lane + 2u * SIDE],
                keys[at + other_lane + 3u * SIDE],
            );
            for (var t = 0u; t < 4u; t++) { // unrolled
                let token = at + token_lane + t * SIDE;
                of_queries[t] += queries[token] * others;
                if (DELTA) {
                    of_keys[t] += keys[token] * others;
                }
            }
            var mine = queries[at + local % CHUNK];
            if (local >= CHUNK) {
                mine = keys[at + local % CHUNK];
            }
            square += dot(mine, mine);
        }
        workgroupBarrier();
    }
    if (local < CHUNK) {
        var log_decay = 0.0;
        var weight = 0.0;
        if (local < count) {
            let row = first + local;
            weight = softplus(rates[row * RATE_STRIDE + RATE_AT + head] + heads[HEADS + head]);
            log_decay = max(weight * heads[head], LEAST_LOG);
            if (DELTA) {
                weight = 1.0 / (1.0 + exp(-shares[row * SHARE_STRIDE + SHARE_AT + head]));
            }
        }
        logs[local] = log_decay;
        weights[local] = weight;
    }
    var factor = select(Q_SCALE, 1.0, local >= CHUNK);
    if (DELTA) {
        factor *= inverseSqrt(square + EPS);
    }
    squares[local] = factor;
    workgroupBarrier();
    if (local < CHUNK) {
        var sum = 0.0;
        for (var i = 0u; i <= local; i++) {
            sum += logs[i];
        }
        sums[local] = sum;
    }
    workgroupBarrier();
    let product_at = (workgroup.y * HEADS + head) * PRODUCT_WORDS;
    for (var t = 0u; t < 4u; t++) { // unrolled
        let token = token_lane + t * SIDE;
        for (var o = 0u; o < 4u; o++) { // unrolled
            let other = other_lane + o * SIDE;
            var read = 0.0;
            var shared_part = 0.0;
            if (other <= token && token < count) {
                let factor = exp(sums[token] - sums[other]) * squares[CHUNK + other];
                read = of_queries[t][o] * factor * squares[token];
                shared_part = of_keys[t][o] * factor * squares[CHUNK + token] * weights[token];
            }
            products[product_at + (CHUNK + token) * CHUNK + other] = read;
            matrix[token * CHUNK + other] = shared_part;
        }
    }
    if (local < CHUNK) {
        let vectors = product_at + 2u * CHUNK * CHUNK + local;
        let decay = exp(sums[local]);
        products[vectors] = select(weights[local], decay * squares[CHUNK + local], DELTA);
        products[vectors + CHUNK] = decay * squares[local];
        products[vectors + 2u * CHUNK] = exp(sums[CHUNK - 1u] - sums[local]) * squares[CHUNK + local];
        if (local == 0u) {
            products[vectors + 3u * CHUNK] = exp(sums[CHUNK - 1u]);
        }
    }
    workgroupBarrier();
    // A lane solves for a column.
    if (DELTA && local < CHUNK) {
        for (var token = 0u; token < CHUNK; token++) {
            var value = select(0.0, 1.0, token == local);
            for (var i = local; i < token; i++) {
                value -= matrix[token * CHUNK + i] * inverse[i * CHUNK + local];
            }
            inverse[token * CHUNK + local] = value;
            products[product_at + token * CHUNK + local] = value * weights[local];
        }
    }
}
