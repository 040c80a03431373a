// Attention of a few tokens, directly on the output of the projections. Each workgroup handles GROUP query
// heads of one key head of one token over a split: every SPLITS-th block of BLOCK_TOKENS tokens of its
// sequence. attention_merge.wgsl joins the splits. The assignment of blocks to splits depends on the
// token's position alone. The workgroup of the token's own block writes its K and V to the KV cache.
// K and V of earlier tokens of the same step are recomputed here and rounded to the cache format, because a
// dispatch cannot read what it writes.
@group(0) @binding(B_partials) var<storage, read_write> partials: array<vec4<f32>>; // [tokens, SPLITS, HEADS, VECTORS + 1]
@group(0) @binding(B_kv) var<storage, read_write> kv: array<KvWord>;

const PARTS: u32 = BLOCK_TOKENS / VECTORS; // lanes that share one vector of the output
const STORES: u32 = VECTORS / STORE_VECTORS; // of a token's key, and of its value

var<workgroup> queries: array<vec4<f32>, GROUP * VECTORS>;
var<workgroup> fresh_keys: array<vec4<f32>, FRESH_TOKENS * VECTORS>;
var<workgroup> scores: array<f32, GROUP * BLOCK_TOKENS>;
var<workgroup> stripes: array<f32, GROUP * STRIPES>;
var<workgroup> partial_sums: array<vec4<f32>, BLOCK_TOKENS>;

// STORE_VECTORS vectors of a token's key, starting with `first`.
fn key_vectors(token: u32, kv_head: u32, first: u32, position: u32) -> array<vec4<f32>, STORE_VECTORS> {
    var vectors: array<vec4<f32>, STORE_VECTORS>;
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        vectors[i] = head_rotated(token, HEADS + kv_head, first + i, position);
    }
    return vectors;
}

// The same for its value.
fn value_vectors(token: u32, kv_head: u32, first: u32) -> array<vec4<f32>, STORE_VECTORS> {
    var vectors: array<vec4<f32>, STORE_VECTORS>;
    for (var i = 0u; i < STORE_VECTORS; i++) { // unrolled
        vectors[i] = value_load(token, HEADS + KV_HEADS + kv_head, first + i);
    }
    return vectors;
}

@compute @workgroup_size(BLOCK_TOKENS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first_head = workgroup.x * GROUP;
    let token = workgroup.z;
    if (token >= step_tokens()) {
        return;
    }
    let position = row_position(token);
    let window_begin = first_seen(position);
    let first_block = window_begin / BLOCK_TOKENS;
    let last_block = position / BLOCK_TOKENS;
    if (first_block + workgroup.y > last_block) {
        return;
    }
    let table = row_table(token);
    let kv_head = first_head / (HEADS / KV_HEADS);

    // Tokens of this step that directly precede this one in its sequence.
    var before = 0u;
    while (before < token && row_table(token - 1u - before) == table) {
        before++;
    }
    // With ONLY_QUERIES another layer has written the keys and values of this step, too.
    let fresh_begin = select(position - before, position + 1u, ONLY_QUERIES);
    let fresh_block = max(fresh_begin, window_begin) / BLOCK_TOKENS;
    let has_last = (last_block - first_block) % SPLITS == workgroup.y;
    let has_fresh = has_last || (fresh_block - first_block) % SPLITS == workgroup.y;
    let factor = query_factor(position);
    for (var i = local; i < GROUP * VECTORS; i += BLOCK_TOKENS) {
        queries[i] = head_rotated(token, first_head + i / VECTORS, i % VECTORS, position) * factor;
    }
    if (has_fresh && !ONLY_QUERIES) {
        for (var i = local; i < (before + 1u) * STORES; i += BLOCK_TOKENS) {
            let row = i / STORES;
            let first = i % STORES * STORE_VECTORS;
            let vectors =
                kv_kept(key_vectors(token - before + row, kv_head, first, fresh_begin + row));
            for (var j = 0u; j < STORE_VECTORS; j++) { // unrolled
                fresh_keys[row * VECTORS + first + j] = vectors[j];
            }
        }
    }
    if (has_last && !ONLY_QUERIES && first_head % (HEADS / KV_HEADS) == 0u && local < STORES) {
        let first = local * STORE_VECTORS;
        let key_at = kv_at(table, position, 0u, kv_head) + first;
        let value_at = kv_at(table, position, 1u, kv_head) + first;
        kv_store(key_at, key_vectors(token, kv_head, first, position));
        kv_store(value_at, value_vectors(token, kv_head, first));
    }
    workgroupBarrier();

    let vector = local % VECTORS;
    var sums = array<vec4<f32>, GROUP>();
    var peaks: array<f32, GROUP>;
    for (var g = 0u; g < GROUP; g++) { // unrolled
        peaks[g] = -3.0e38;
    }
    var total = 0.0; // of a lane's stripe
    for (var block = first_block + workgroup.y; block <= last_block; block += SPLITS) {
        let begin = max(block * BLOCK_TOKENS, window_begin);
        let count = min((block + 1u) * BLOCK_TOKENS, position + 1u) - begin;
        // Each lane handles one token of the block.
        var products = array<f32, GROUP>();
        if (local < count) {
            let past = begin + local;
            let is_fresh = past >= fresh_begin;
            let at = kv_at(table, past, 0u, kv_head);
            for (var i = 0u; i < VECTORS; i++) {
                var key: vec4<f32>;
                if (is_fresh) {
                    key = fresh_keys[(past - fresh_begin) * VECTORS + i];
                } else {
                    key = kv_load(at + i);
                }
                for (var g = 0u; g < GROUP; g++) { // unrolled
                    products[g] += dot(queries[g * VECTORS + i], key);
                }
            }
            for (var g = 0u; g < GROUP; g++) { // unrolled
                products[g] = soft_capped(products[g]);
                scores[g * BLOCK_TOKENS + local] = products[g];
            }
        }
        workgroupBarrier();
        if (local < GROUP * STRIPES) {
            var peak = -3.0e38;
            for (var i = local % STRIPES; i < count; i += STRIPES) {
                peak = max(peak, scores[local / STRIPES * BLOCK_TOKENS + i]);
            }
            stripes[local] = peak;
        }
        workgroupBarrier();
        for (var g = 0u; g < GROUP; g++) { // unrolled
            var peak = peaks[g];
            for (var i = 0u; i < STRIPES; i++) {
                peak = max(peak, stripes[g * STRIPES + i]);
            }
            let correction = exp(peaks[g] - peak);
            peaks[g] = peak;
            sums[g] *= correction;
            if (local / STRIPES == g) {
                total *= correction;
            }
            if (local < count) {
                scores[g * BLOCK_TOKENS + local] = exp(products[g] - peak);
            }
        }
        workgroupBarrier();
        if (local < GROUP * STRIPES) {
            for (var i = local % STRIPES; i < count; i += STRIPES) {
                total += scores[local / STRIPES * BLOCK_TOKENS + i];
            }
        }
        // PARTS lanes share each vector of the values.
        if (local < PARTS * VECTORS) {
            for (var i = local / VECTORS; i < count; i += PARTS) {
                let past = begin + i;
                var value: vec4<f32>;
                if (past >= fresh_begin) {
                    let first = vector / STORE_VECTORS * STORE_VECTORS;
                    var vectors = kv_kept(value_vectors(token - (position - past), kv_head, first));
                    value = vectors[vector - first];
                } else {
                    value = kv_load(kv_at(table, past, 1u, kv_head) + vector);
                }
                for (var g = 0u; g < GROUP; g++) { // unrolled
                    sums[g] += scores[g * BLOCK_TOKENS + i] * value;
                }
            }
        }
        workgroupBarrier();
    }
    if (local < GROUP * STRIPES) {
        stripes[local] = total;
    }
    let out_at = ((token * SPLITS + workgroup.y) * HEADS + first_head) * (VECTORS + 1u);
    for (var g = 0u; g < GROUP; g++) { // unrolled
        partial_sums[local] = sums[g];
        workgroupBarrier();
        if (local < VECTORS) {
            var sum = partial_sums[local];
            for (var i = 1u; i < PARTS; i++) {
                sum += partial_sums[i * VECTORS + local];
            }
            partials[out_at + g * (VECTORS + 1u) + local] = sum;
        }
        if (local == 0u) {
            var all = 0.0;
            for (var i = 0u; i < STRIPES; i++) {
                all += stripes[g * STRIPES + i];
            }
            partials[out_at + g * (VECTORS + 1u) + VECTORS] = vec4<f32>(peaks[g], all, 0.0, 0.0);
        }
        workgroupBarrier();
    }
}
