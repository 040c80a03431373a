// As attention.wgsl, for devices where barriers cost more than arithmetic: the LANES lanes of a
// workgroup share a query head of a token and keep its output in registers, four past tokens at a
// time.

@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_DIM / 4]
@group(0) @binding(B_kv) var<storage, read> kv: array<vec4<f32>>; // [page, k|v, page token, KV_DIM / 4]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, Q_DIM / 4]

const VECTORS: u32 = HEAD_DIM / 4u; // of one head; lane l has l, l + LANES, ...

fn sum_lanes(value: vec4<f32>) -> vec4<f32> {
    var sum = value;
    for (var mask = LANES / 2u; mask > 0u; mask = mask / 2u) {
        sum += subgroupShuffleXor(sum, mask);
    }
    return sum;
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let head = workgroup.x;
    let token = workgroup.y;
    if (token >= step_tokens()) {
        return;
    }
    let length = row_position(token) + 1u;
    let table = row_table(token);
    let kv_head = head / (HEADS / KV_HEADS);
    let q_at = token * (Q_DIM / 4u) + head * VECTORS + lane;
    var query: array<vec4<f32>, LANE_VECTORS>;
    var sums: array<vec4<f32>, LANE_VECTORS>;
    for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
        if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
            query[i] = q[q_at + i * LANES];
        }
    }
    var peak = -3.0e38;
    var total = 0.0;
    // Four tokens never straddle a page. Past the end the last one stands in, without weight: what
    // lies there may be anything.
    for (var base = 0u; base < length; base += 4u) {
        let past = min(vec4<u32>(base, base + 1u, base + 2u, base + 3u), vec4<u32>(length - 1u));
        let first = kv_row(table, base, 0u) / 4u + kv_head * VECTORS + lane;
        let keys = vec4<u32>(first) + (past - vec4<u32>(base)) * (KV_DIM / 4u);
        var products = vec4<f32>(0.0);
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                products += vec4<f32>(
                    dot(query[i], kv[keys.x + i * LANES]),
                    dot(query[i], kv[keys.y + i * LANES]),
                    dot(query[i], kv[keys.z + i * LANES]),
                    dot(query[i], kv[keys.w + i * LANES]),
                );
            }
        }
        let is_past = vec4<u32>(base, base + 1u, base + 2u, base + 3u) < vec4<u32>(length);
        let scores = select(vec4<f32>(-3.0e38), sum_lanes(products), is_past);
        let highest = max(max(scores.x, scores.y), max(scores.z, scores.w));
        let new_peak = max(peak, highest);
        let correction = exp(peak - new_peak);
        let weights = select(vec4<f32>(0.0), exp(scores - new_peak), is_past);
        peak = new_peak;
        total = total * correction + dot(weights, vec4<f32>(1.0));
        let values = keys + vec4<u32>(PAGE_TOKENS * KV_DIM / 4u);
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                var sum = sums[i] * correction;
                sum += weights.x * kv[values.x + i * LANES];
                sum += weights.y * kv[values.y + i * LANES];
                sum += weights.z * kv[values.z + i * LANES];
                sums[i] = sum + weights.w * kv[values.w + i * LANES];
            }
        }
    }
    for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
        if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
            out[q_at + i * LANES] = sums[i] / total;
        }
    }
}
