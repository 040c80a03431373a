// For each row of logits, the log-probability of a given token, and the TOP best tokens with theirs. One
// workgroup per row. Logits are compared as integers in the same order, because compilers may assume
// that there are neither NaN nor infinities. A row with NaN, +inf or no finite logit gets the
// log-probability INVALID_SCORE.
@group(0) @binding(B_logits) var<storage, read> logits: array<u32>; // [tokens, VOCAB], bits of f32
@group(0) @binding(B_next) var<storage, read> next: array<u32>; // [tokens]
// [tokens, 1 + 2 * TOP]: bits of the log-probability, ids of the best tokens, bits of their log-probabilities
@group(0) @binding(B_out) var<storage, read_write> out: array<u32>;

const NEGATIVE_INFINITY: u32 = 0xff800000u;
// Keys of -inf and of the values that make a row invalid.
const KEY_LEAST: u32 = 0x007fffffu;
const KEY_INVALID: u32 = 0xff800000u;

var<workgroup> best: array<vec2<u32>, WORKGROUP>;
var<workgroup> sums: array<f32, WORKGROUP>;

// A key that increases with the logit.
fn key_of(bits: u32) -> u32 {
    if ((bits & 0x7f800000u) == 0x7f800000u && bits != NEGATIVE_INFINITY) {
        return KEY_INVALID;
    }
    if ((bits & 0x80000000u) == 0u) {
        return bits | 0x80000000u;
    }
    // -0 equals +0.
    return select(~bits, 0x80000000u, bits == 0x80000000u);
}

fn bits_of(key: u32) -> u32 {
    return select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u);
}

// Whether (key, id) `a` comes before `b`: larger logits first, then lower ids.
fn precedes(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

// The first (key, id) of a row after `previous`, for all lanes.
fn best_after(previous: vec2<u32>, row: u32, local: u32) -> vec2<u32> {
    var found = vec2<u32>(0u, 0xffffffffu);
    for (var id = local; id < VOCAB; id += WORKGROUP) {
        let candidate = vec2<u32>(key_of(logits[row * VOCAB + id]), id);
        if (precedes(previous, candidate) && precedes(candidate, found)) {
            found = candidate;
        }
    }
    // Lanes may still be reading the result of the previous call.
    workgroupBarrier();
    best[local] = found;
    for (var lanes = WORKGROUP / 2u; lanes > 0u; lanes = lanes / 2u) {
        workgroupBarrier();
        if (local < lanes && precedes(best[local + lanes], best[local])) {
            best[local] = best[local + lanes];
        }
    }
    workgroupBarrier();
    return best[0];
}

// log(sum(exp(logits))) of a row, for all lanes.
fn log_sum_exp(peak: f32, row: u32, local: u32) -> f32 {
    var sum = 0.0;
    for (var id = local; id < VOCAB; id += WORKGROUP) {
        let bits = logits[row * VOCAB + id];
        if (bits != NEGATIVE_INFINITY) {
            sum += exp(bitcast<f32>(bits) - peak);
        }
    }
    sums[local] = sum;
    for (var lanes = WORKGROUP / 2u; lanes > 0u; lanes = lanes / 2u) {
        workgroupBarrier();
        if (local < lanes) {
            sums[local] += sums[local + lanes];
        }
    }
    workgroupBarrier();
    return peak + log(sums[0]);
}

fn logprob(bits: u32, normalizer: f32) -> u32 {
    if (bits == NEGATIVE_INFINITY) {
        return bits;
    }
    return bitcast<u32>(min(bitcast<f32>(bits) - normalizer, 0.0));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup.x;
    let first = best_after(vec2<u32>(0xffffffffu), row, local);
    let normalizer = log_sum_exp(bitcast<f32>(bits_of(first.x)), row, local);
    let at = row * (1u + 2u * TOP);
    var chosen = logprob(logits[row * VOCAB + next[row]], normalizer);
    var place = first;
    for (var i = 0u; i < TOP; i++) {
        if (i > 0u) {
            place = best_after(place, row, local);
        }
        let value = logprob(bits_of(place.x), normalizer);
        if (place.y == next[row]) {
            // Both places get the same bits, even if compilers transform the two formulas differently.
            chosen = value;
        }
        if (local == 0u) {
            out[at + 1u + i] = place.y;
            out[at + 1u + TOP + i] = value;
        }
    }
    if (local == 0u) {
        let valid = first.x > KEY_LEAST && first.x < KEY_INVALID;
        out[at] = select(INVALID_SCORE, chosen, valid);
    }
}
