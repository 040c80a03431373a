// A recurrence (linear_recurrence.wgsl) over the chunks of one sequence, whose inner products are known
// (chunk_products.wgsl). A workgroup has COLUMNS columns of the state of a head, whose rows are divided among PARTS lanes,
// and passes through the chunks.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, X_STRIDE]: queries, keys, values
@group(0) @binding(B_heads) var<storage, read> heads: array<f32>; // [3, HEADS]: decay, bias of the rate, share of the value in the result
@group(0) @binding(B_products) var<storage, read> products: array<vec4<f32>>; // [chunk, HEADS, PRODUCT_WORDS]: T, A, vectors
@group(0) @binding(B_states) var<storage, read_write> states: array<f32>; // [slot, SLOT_WORDS]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, HEADS, VALUE_LEN]

const PARTS: u32 = WORKGROUP / COLUMNS;
// Vectors of a row of a chunk's matrices.
const ROW: u32 = CHUNK / 4u;

var<workgroup> partial_sums: array<f32, PARTS * CHUNK * COLUMNS>; // [part, token, column]
var<workgroup> rests: array<f32, CHUNK * COLUMNS>; // values less what the state returns
var<workgroup> changes: array<f32, CHUNK * COLUMNS>;

// An element of the vectors of a chunk: factors of keys, of queries, of changes at the end, and the whole decay.
fn factor(products_at: u32, vector: u32, token: u32) -> f32 {
    let at = (2u * CHUNK + vector) * CHUNK + token;
    return products[products_at + at / 4u][at % 4u];
}

fn value_of(row: u32, at: u32) -> f32 {
    let word = row * X_STRIDE + V_AT + at;
    return x[word / 4u][word % 4u];
}

fn sum_of_parts(token: u32, lane: u32) -> f32 {
    var sum = 0.0;
    for (var part = 0u; part < PARTS; part++) {
        sum += partial_sums[(part * CHUNK + token) * COLUMNS + lane];
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup.x / (VALUE_LEN / COLUMNS);
    let lane = local % COLUMNS;
    let part = local / COLUMNS;
    let column = workgroup.x % (VALUE_LEN / COLUMNS) * COLUMNS + lane;
    let key_head = select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, TILED);
    let key_at = key_head * (KEY_LEN / 4u) + part * VECTORS;
    let value_at = head * VALUE_LEN + column;
    let tokens = step_tokens();
    let state_at = row_state(0u) * SLOT_WORDS + STATE_AT + (head * KEY_LEN + part * KEYS) * VALUE_LEN + column;
    let is_new = row_position(0u) == 0u;
    var state: array<vec4<f32>, VECTORS>;
    for (var i = 0u; i < VECTORS; i++) { // unrolled
        state[i] = vec4<f32>(0.0);
        if (!is_new) {
            let at = state_at + 4u * i * VALUE_LEN;
            state[i] = vec4<f32>(
                states[at],
                states[at + VALUE_LEN],
                states[at + 2u * VALUE_LEN],
                states[at + 3u * VALUE_LEN],
            );
        }
    }
    for (var first = 0u; first < tokens; first += CHUNK) {
        let count = min(tokens - first, CHUNK);
        let products_at = (first / CHUNK * HEADS + head) * (PRODUCT_WORDS / 4u);
        if (DELTA) {
            for (var t = 0u; t < count; t++) {
                let at = (first + t) * (X_STRIDE / 4u) + K_AT / 4u + key_at;
                var sum = 0.0;
                for (var i = 0u; i < VECTORS; i++) { // unrolled
                    sum += dot(state[i], x[at + i]);
                }
                partial_sums[(part * CHUNK + t) * COLUMNS + lane] = sum;
            }
            workgroupBarrier();
            for (var t = part; t < CHUNK; t += PARTS) {
                var rest = 0.0;
                if (t < count) {
                    rest = value_of(first + t, value_at) - factor(products_at, 0u, t) * sum_of_parts(t, lane);
                }
                rests[t * COLUMNS + lane] = rest;
            }
            workgroupBarrier();
            for (var t = part; t < CHUNK; t += PARTS) {
                var sum = 0.0;
                for (var i = 0u; i <= t / 4u; i++) {
                    let four = vec4<f32>(
                        rests[4u * i * COLUMNS + lane],
                        rests[(4u * i + 1u) * COLUMNS + lane],
                        rests[(4u * i + 2u) * COLUMNS + lane],
                        rests[(4u * i + 3u) * COLUMNS + lane],
                    );
                    sum += dot(products[products_at + t * ROW + i], four);
                }
                changes[t * COLUMNS + lane] = sum;
            }
        } else {
            for (var t = part; t < CHUNK; t += PARTS) {
                var change = 0.0;
                if (t < count) {
                    change = factor(products_at, 0u, t) * value_of(first + t, value_at);
                }
                changes[t * COLUMNS + lane] = change;
            }
        }
        for (var t = 0u; t < count; t++) {
            let at = (first + t) * (X_STRIDE / 4u) + Q_AT / 4u + key_at;
            var sum = 0.0;
            for (var i = 0u; i < VECTORS; i++) { // unrolled
                sum += dot(state[i], x[at + i]);
            }
            partial_sums[(part * CHUNK + t) * COLUMNS + lane] = sum;
        }
        workgroupBarrier();
        for (var t = part; t < count; t += PARTS) {
            var sum = factor(products_at, 1u, t) * sum_of_parts(t, lane);
            for (var i = 0u; i <= t / 4u; i++) {
                let four = vec4<f32>(
                    changes[4u * i * COLUMNS + lane],
                    changes[(4u * i + 1u) * COLUMNS + lane],
                    changes[(4u * i + 2u) * COLUMNS + lane],
                    changes[(4u * i + 3u) * COLUMNS + lane],
                );
                sum += dot(products[products_at + (CHUNK + t) * ROW + i], four);
            }
            let row = first + t;
            sum += heads[2u * HEADS + head] * value_of(row, value_at);
            out[row * HEADS * VALUE_LEN + value_at] = sum;
        }
        let decay = factor(products_at, 3u, 0u);
        for (var i = 0u; i < VECTORS; i++) { // unrolled
            state[i] *= decay;
        }
        for (var t = 0u; t < count; t++) {
            let at = (first + t) * (X_STRIDE / 4u) + K_AT / 4u + key_at;
            let change = changes[t * COLUMNS + lane] * factor(products_at, 2u, t);
            for (var i = 0u; i < VECTORS; i++) { // unrolled
                state[i] += x[at + i] * change;
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < VECTORS; i++) { // unrolled
        let at = state_at + 4u * i * VALUE_LEN;
        states[at] = state[i].x;
        states[at + VALUE_LEN] = state[i].y;
        states[at + 2u * VALUE_LEN] = state[i].z;
        states[at + 3u * VALUE_LEN] = state[i].w;
    }
}
