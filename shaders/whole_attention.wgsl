// Attention without a causal mask: a token attends to the tokens of its segment, or to those less than WINDOW
// away from it. The segments of the step are whole sequences. A workgroup handles a query head of WORKGROUP consecutive tokens, a
// lane one of them; TILE keys and values at a time are shared. Sequences that begin or end within the workgroup
// come one after the other. A lane adds keys in the order of their positions, so its result does not depend on where
// tiles begin, nor on other sequences.
@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_DIM / 4]
@group(0) @binding(B_kv) var<storage, read> kv: array<KvWord>;
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, Q_DIM / 4]

// VECTORS are those of one head.
var<workgroup> keys: array<vec4<f32>, TILE * VECTORS>;
var<workgroup> values: array<vec4<f32>, TILE * VECTORS>;

// The first key that a token at `position` sees, in a sequence that begins at `first`.
fn begin_of(position: u32, first: u32) -> u32 {
    return position - min(position - first, WINDOW - 1u);
}

// The end of the keys that it sees, in a sequence of `length` tokens. WINDOW may be the largest number.
fn end_of(position: u32, length: u32) -> u32 {
    return position + min(length - position, WINDOW);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup.x;
    let first_token = workgroup.y * WORKGROUP;
    let tokens = step_tokens();
    if (first_token >= tokens) {
        return;
    }
    let last_token = min(first_token + WORKGROUP, tokens) - 1u;
    // Lanes without a token repeat the last one.
    let token = min(first_token + local, last_token);
    let own_table = row_table(token);
    let position = row_position(token);
    let begin = begin_of(position, row_first(token));
    let end = end_of(position, row_length(token));
    let kv_head = head / (HEADS / KV_HEADS);
    let q_at = token * (Q_DIM / 4u) + head * VECTORS;
    var query = array<vec4<f32>, VECTORS>();
    var sum = array<vec4<f32>, VECTORS>();
    for (var i = 0u; i < VECTORS; i++) { // unrolled
        query[i] = q[q_at + i];
    }
    var peak = -3.0e38;
    var total = 0.0;
    var next = first_token;
    while (next <= last_token) {
        let table = row_table(next);
        let length = row_length(next);
        let after = next + length - row_position(next);
        let last_position = row_position(min(after - 1u, last_token));
        let tiles_end = end_of(last_position, length);
        for (var base = begin_of(row_position(next), row_first(next)); base < tiles_end; base += TILE) {
            let count = min(TILE, tiles_end - base);
            for (var i = local; i < count * VECTORS; i += WORKGROUP) {
                let key = base + i / VECTORS;
                keys[i] = kv_load(kv_at(table, key, 0u, kv_head) + i % VECTORS);
                values[i] = kv_load(kv_at(table, key, 1u, kv_head) + i % VECTORS);
            }
            workgroupBarrier();
            if (table == own_table) {
                for (var key = max(base, begin); key < min(base + count, end); key++) {
                    let at = (key - base) * VECTORS;
                    var score = 0.0;
                    for (var i = 0u; i < VECTORS; i++) { // unrolled
                        score += dot(query[i], keys[at + i]);
                    }
                    score = soft_capped(score);
                    let new_peak = max(peak, score);
                    let correction = exp(peak - new_peak);
                    let weight = exp(score - new_peak);
                    peak = new_peak;
                    total = total * correction + weight;
                    for (var i = 0u; i < VECTORS; i++) { // unrolled
                        sum[i] = sum[i] * correction + weight * values[at + i];
                    }
                }
            }
            workgroupBarrier();
        }
        next = after;
    }
    if (first_token + local <= last_token) {
        for (var i = 0u; i < VECTORS; i++) { // unrolled
            out[q_at + i] = sum[i] / total;
        }
    }
}
