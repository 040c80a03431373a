// Joins the partial results of attention_split.wgsl: a sum over splits, each weighted by its own peak.
// One lane per vector of the output.
@group(0) @binding(B_partials) var<storage, read> partials: array<vec4<f32>>; // [tokens, SPLITS, HEADS, VECTORS + 1]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, HEADS, VECTORS]

const VECTORS: u32 = HEAD_DIM / 4u; // of one head

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let token = global.y;
    if (token >= step_tokens() || global.x >= HEADS * VECTORS) {
        return;
    }
    let position = row_position(token);
    let first_block = first_seen(position) / BLOCK_TOKENS;
    let splits = min(position / BLOCK_TOKENS - first_block + 1u, SPLITS);
    let head_at = (token * SPLITS * HEADS + global.x / VECTORS) * (VECTORS + 1u);
    let split_vectors = HEADS * (VECTORS + 1u);
    let head = global.x / VECTORS;
    var peak = sink(head);
    for (var i = 0u; i < splits; i++) {
        peak = max(peak, partials[head_at + i * split_vectors + VECTORS].x);
    }
    var total = sink_weight() * exp(sink(head) - peak);
    var sum = vec4<f32>(0.0);
    for (var i = 0u; i < splits; i++) {
        let at = head_at + i * split_vectors;
        let weight = exp(partials[at + VECTORS].x - peak);
        total += weight * partials[at + VECTORS].y;
        sum += weight * partials[at + global.x % VECTORS];
    }
    out[token * HEADS * VECTORS + global.x] = sum / total;
}
