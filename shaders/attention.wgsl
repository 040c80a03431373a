// Causal attention of one query head of one token over the paged KV cache of its sequence, with an online
// softmax over blocks of WORKGROUP tokens. Queries are already scaled. Used for decode and prefill.
@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_DIM / 4]
@group(0) @binding(B_kv) var<storage, read> kv: array<KvWord>;
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, Q_DIM / 4]

const VECTORS: u32 = HEAD_DIM / 4u; // of one head
const PARTS: u32 = max(WORKGROUP / VECTORS, 1u); // lanes that share one vector of the output

var<workgroup> query: array<vec4<f32>, VECTORS>;
var<workgroup> scores: array<f32, WORKGROUP>;
var<workgroup> partial_out: array<vec4<f32>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let head = workgroup.x;
    let token = workgroup.y;
    if (token >= step_tokens()) {
        return;
    }
    let length = row_end(token);
    let first = first_seen(row_position(token));
    let table = row_table(token);
    let kv_head = head / (HEADS / KV_HEADS);
    let q_at = token * (Q_DIM / 4u) + head * VECTORS;
    for (var i = local; i < VECTORS; i += WORKGROUP) {
        query[i] = q[q_at + i];
    }
    let vector = local % VECTORS;
    let part = local / VECTORS;
    var peak = sink(head);
    var total = sink_weight();
    var sum = vec4<f32>(0.0);
    workgroupBarrier();
    for (var base = first; base < length; base += WORKGROUP) {
        let count = min(WORKGROUP, length - base);
        var score = -3.0e38;
        if (local < count) {
            let at = kv_at(table, base + local, 0u, kv_head);
            score = 0.0;
            for (var i = 0u; i < VECTORS; i++) {
                score += dot(query[i], kv_load(at + i));
            }
            score = soft_capped(score);
        }
        scores[local] = score;
        workgroupBarrier();
        var new_peak = peak;
        for (var i = 0u; i < count; i++) {
            new_peak = max(new_peak, scores[i]);
        }
        workgroupBarrier();
        scores[local] = exp(score - new_peak);
        workgroupBarrier();
        let correction = exp(peak - new_peak);
        peak = new_peak;
        total *= correction;
        sum *= correction;
        for (var i = 0u; i < count; i++) {
            total += scores[i];
        }
        if (part < PARTS) {
            for (var i = part; i < count; i += PARTS) {
                let at = kv_at(table, base + i, 1u, kv_head);
                sum += scores[i] * kv_load(at + vector);
            }
        }
        workgroupBarrier();
    }
    partial_out[local] = sum;
    workgroupBarrier();
    if (local < VECTORS) {
        var value = vec4<f32>(0.0);
        for (var i = 0u; i < PARTS; i++) {
            value += partial_out[i * VECTORS + local];
        }
        out[q_at + local] = value / total;
    }
}
