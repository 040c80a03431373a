// Rotates queries and keys by their position and writes keys and values to the KV memory. Queries
// leave scaled. One lane per vector of q, k or v of one token.
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, HEADS, VECTORS]
@group(0) @binding(B_kv) var<storage, read_write> kv: array<KvWord>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let vectors = (HEADS + 2u * KV_HEADS) * VECTORS;
    let token = global.x / vectors;
    if (token >= step_tokens()) {
        return;
    }
    let position = row_position(token);
    let head = global.x % vectors / VECTORS;
    let vector = global.x % VECTORS;
    if (head < HEADS) {
        let rotated = head_rotated(token, head, vector, position);
        out[(token * HEADS + head) * VECTORS + vector] = rotated * Q_SCALE;
        return;
    }
    let table = row_table(token);
    if (head < HEADS + KV_HEADS) {
        let at = kv_row(table, position, 0u) / 4u + (head - HEADS) * VECTORS;
        kv_store(at + vector, head_rotated(token, head, vector, position));
        return;
    }
    let at = kv_row(table, position, 1u) / 4u + (head - HEADS - KV_HEADS) * VECTORS;
    kv_store(at + vector, head_load(token, head, vector));
}
