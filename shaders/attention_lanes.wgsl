// attention.wgsl for devices where barriers cost more than arithmetic. The LANES lanes of a workgroup
// share a query head of GROUP_TOKENS tokens and keep their outputs in registers. They read four past
// tokens at a time. If there are several tokens, they belong to one sequence and share each load of its
// K and V. The result of a token does not depend on how many there are.

@group(0) @binding(B_q) var<storage, read> q: array<vec4<f32>>; // [tokens, Q_DIM / 4]
@group(0) @binding(B_kv) var<storage, read> kv: array<KvWord>;
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
    let first_token = workgroup.y * GROUP_TOKENS;
    if (first_token >= step_tokens()) {
        return;
    }
    let last_token = min(first_token + GROUP_TOKENS, step_tokens()) - 1u;
    let table = row_table(first_token);
    let kv_head = head / (HEADS / KV_HEADS);
    var firsts: array<u32, GROUP_TOKENS>;
    var lengths: array<u32, GROUP_TOKENS>;
    var query: array<array<vec4<f32>, LANE_VECTORS>, GROUP_TOKENS>;
    var sums: array<array<vec4<f32>, LANE_VECTORS>, GROUP_TOKENS>;
    var peaks: array<f32, GROUP_TOKENS>;
    var totals: array<f32, GROUP_TOKENS>;
    for (var t = 0u; t < GROUP_TOKENS; t++) { // unrolled
        // Missing tokens repeat the last one.
        let token = min(first_token + t, last_token);
        lengths[t] = row_end(token);
        firsts[t] = first_seen(row_position(token));
        peaks[t] = sink(head);
        totals[t] = sink_weight();
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                query[t][i] = q[token * (Q_DIM / 4u) + head * VECTORS + lane + i * LANES];
            }
        }
    }
    let length = row_end(last_token);
    // Four tokens never straddle a page. Tokens past the end are replaced by the last token with weight 0,
    // because the content of the cache is undefined there.
    for (var base = firsts[0u] / 4u * 4u; base < length; base += 4u) {
        let places = vec4<u32>(base, base + 1u, base + 2u, base + 3u);
        let past = min(places, vec4<u32>(length - 1u));
        let first = kv_at(table, base, 0u, kv_head) + lane;
        let keys = vec4<u32>(first) + (past - vec4<u32>(base)) * VECTORS;
        // Explicit zeros: Chromium 156 initializes a declared variable once, not in each iteration.
        var products = array<vec4<f32>, GROUP_TOKENS>();
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                let a = kv_load(keys.x + i * LANES);
                let b = kv_load(keys.y + i * LANES);
                let c = kv_load(keys.z + i * LANES);
                let d = kv_load(keys.w + i * LANES);
                for (var t = 0u; t < GROUP_TOKENS; t++) { // unrolled
                    let x = query[t][i];
                    products[t] += vec4<f32>(dot(x, a), dot(x, b), dot(x, c), dot(x, d));
                }
            }
        }
        var weights: array<vec4<f32>, GROUP_TOKENS>;
        var corrections: array<f32, GROUP_TOKENS>;
        for (var t = 0u; t < GROUP_TOKENS; t++) { // unrolled
            let is_past = (places < vec4<u32>(lengths[t])) & (places >= vec4<u32>(firsts[t]));
            let summed = sum_lanes(products[t]);
            let capped = vec4<f32>(
                soft_capped(summed.x), soft_capped(summed.y), soft_capped(summed.z), soft_capped(summed.w),
            );
            let scores = select(vec4<f32>(-3.0e38), capped, is_past);
            let highest = max(max(scores.x, scores.y), max(scores.z, scores.w));
            let peak = max(peaks[t], highest);
            corrections[t] = exp(peaks[t] - peak);
            weights[t] = select(vec4<f32>(0.0), exp(scores - peak), is_past);
            peaks[t] = peak;
            totals[t] = totals[t] * corrections[t] + dot(weights[t], vec4<f32>(1.0));
        }
        let values = keys + vec4<u32>(KV_HEADS * PAGE_TOKENS * VECTORS);
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                let a = kv_load(values.x + i * LANES);
                let b = kv_load(values.y + i * LANES);
                let c = kv_load(values.z + i * LANES);
                let d = kv_load(values.w + i * LANES);
                for (var t = 0u; t < GROUP_TOKENS; t++) { // unrolled
                    let w = weights[t];
                    sums[t][i] = sums[t][i] * corrections[t] + w.x * a + w.y * b + w.z * c + w.w * d;
                }
            }
        }
    }
    for (var t = 0u; t < GROUP_TOKENS; t++) { // unrolled
        let token = min(first_token + t, last_token);
        for (var i = 0u; i < LANE_VECTORS; i++) { // unrolled
            if (VECTORS % LANES == 0u || i * LANES + lane < VECTORS) {
                out[token * (Q_DIM / 4u) + head * VECTORS + lane + i * LANES] = sums[t][i] / totals[t];
            }
        }
    }
}
