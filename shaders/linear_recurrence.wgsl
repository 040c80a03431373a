// A recurrence whose state is a matrix per head, [KEY_LEN, VALUE_LEN]. A token decays it, adds the outer product of its key
// and of a multiple of its value (or, with DELTA, of the value less what the state returns for the key), and reads it with
// its query. Columns of the state do not depend on each other. A workgroup has COLUMNS columns of a head, whose rows
// are divided among PARTS lanes; it passes through the tokens of one sequence, of which a step has a few.
@group(0) @binding(B_x) var<storage, read> x: array<f32>; // [tokens, X_STRIDE]: queries, keys, values
@group(0) @binding(B_rates) var<storage, read> rates: array<f32>; // [tokens, RATE_STRIDE], a number per head
@group(0) @binding(B_shares) var<storage, read> shares: array<f32>; // [tokens, SHARE_STRIDE], a number per head, if DELTA
@group(0) @binding(B_heads) var<storage, read> heads: array<f32>; // [3, HEADS]: decay, bias of the rate, share of the value in the result
@group(0) @binding(B_states) var<storage, read_write> states: array<f32>; // [slot, SLOT_WORDS]
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>; // [tokens, HEADS, VALUE_LEN]

const PARTS: u32 = WORKGROUP / COLUMNS;

// Sums of a lane, of a token and of the one before: one barrier per token is enough.
var<workgroup> products: array<vec4<f32>, 2u * WORKGROUP>; // state * key, state * query, key * query, key * key
var<workgroup> squares: array<f32, 2u * WORKGROUP>; // query * query

fn softplus(v: f32) -> f32 {
    return max(v, 0.0) + log(1.0 + exp(-abs(v)));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup.x / (VALUE_LEN / COLUMNS);
    let lane = local % COLUMNS;
    let column = workgroup.x % (VALUE_LEN / COLUMNS) * COLUMNS + lane;
    let first_key = local / COLUMNS * KEYS;
    let key_head = select(head / (HEADS / KEY_HEADS), head % KEY_HEADS, TILED);
    let key_at = key_head * KEY_LEN + first_key;
    let tokens = step_tokens();
    var row = workgroup.y;
    if (row >= tokens) {
        return;
    }
    let table = row_table(row);
    if (row > 0u && row_table(row - 1u) == table) {
        return;
    }
    let state_at = row_state(row) * SLOT_WORDS + STATE_AT + (head * KEY_LEN + first_key) * VALUE_LEN + column;
    let is_new = row_position(row) == 0u;
    var state: array<f32, KEYS>;
    for (var i = 0u; i < KEYS; i++) { // unrolled
        state[i] = 0.0;
        if (!is_new) {
            state[i] = states[state_at + i * VALUE_LEN];
        }
    }
    loop {
        let at = row * X_STRIDE;
        var sums = vec4<f32>(0.0);
        var square = 0.0;
        for (var i = 0u; i < KEYS; i++) { // unrolled
            let key = x[at + K_AT + key_at + i];
            let query = x[at + Q_AT + key_at + i];
            sums += vec4<f32>(state[i] * key, state[i] * query, key * query, key * key);
            square += query * query;
        }
        let turn = row % 2u * WORKGROUP;
        products[turn + local] = sums;
        squares[turn + local] = square;
        workgroupBarrier();
        sums = vec4<f32>(0.0);
        square = 0.0;
        for (var part = 0u; part < PARTS; part++) {
            sums += products[turn + part * COLUMNS + lane];
            square += squares[turn + part * COLUMNS + lane];
        }
        let value = x[at + V_AT + head * VALUE_LEN + column];
        let rate = softplus(rates[row * RATE_STRIDE + RATE_AT + head] + heads[HEADS + head]);
        let decay = exp(rate * heads[head]);
        var key_scale = 1.0;
        var query_scale = Q_SCALE;
        var change = rate * value;
        if (DELTA) {
            key_scale = inverseSqrt(sums.w + EPS);
            query_scale *= inverseSqrt(square + EPS);
            let share = 1.0 / (1.0 + exp(-shares[row * SHARE_STRIDE + SHARE_AT + head]));
            change = share * (value - decay * sums.x * key_scale);
        }
        change *= key_scale;
        for (var i = 0u; i < KEYS; i++) { // unrolled
            state[i] = decay * state[i] + x[at + K_AT + key_at + i] * change;
        }
        if (first_key == 0u) {
            let read = (decay * sums.y + sums.z * change) * query_scale;
            out[(row * HEADS + head) * VALUE_LEN + column] = read + heads[2u * HEADS + head] * value;
        }
        row++;
        if (row >= tokens) {
            break;
        }
        if (row_table(row) != table) {
            break;
        }
    }
    for (var i = 0u; i < KEYS; i++) { // unrolled
        states[state_at + i * VALUE_LEN] = state[i];
    }
}
