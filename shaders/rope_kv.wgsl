// Rotates Q and K by their position, scales Q, and writes K and V to the KV cache. One lane per query
// vector of a token and per STORE_VECTORS vectors of its K or V.
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, HEADS, VECTORS]
@group(0) @binding(B_kv) var<storage, read_write> kv: array<KvWord>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let queries = HEADS * VECTORS;
    // Lanes that store the keys of a token; as many store its values.
    let stores = KV_HEADS * VECTORS / STORE_VECTORS;
    let lanes = queries + select(2u * stores, 0u, ONLY_QUERIES);
    let token = global.x / lanes;
    if (token >= step_tokens()) {
        return;
    }
    let position = row_position(token);
    let lane = global.x % lanes;
    if (lane < queries) {
        let rotated = head_rotated(token, lane / VECTORS, lane % VECTORS, position);
        out[token * queries + lane] = rotated * query_factor(position);
        return;
    }
    let value = (lane - queries) / stores;
    let first = (lane - queries) % stores * STORE_VECTORS;
    var values: array<vec4<f32>, STORE_VECTORS>;
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        let head = HEADS + value * KV_HEADS + (first + i) / VECTORS;
        let vector = (first + i) % VECTORS;
        if (value == 0u) {
            values[i] = head_rotated(token, head, vector, position);
        } else {
            values[i] = value_load(token, head, vector);
        }
    }
    let at = kv_at(row_table(token), position, value, first / VECTORS);
    kv_store(at + first % VECTORS, values);
}
