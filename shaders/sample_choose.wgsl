// Stages 6 to 9 of the sampler chain: samples a token for every row from its adjusted logits, records it
// in the slot's account, writes the result and advances the row to its next step. One workgroup per row.
@group(0) @binding(B_logits) var<storage, read> logits: array<u32>; // [rows, VOCAB], bits of f32
@group(0) @binding(B_adjusted) var<storage, read> adjusted: array<u32>;
@group(0) @binding(B_scratch) var<storage, read> scratch: array<u32>; // [rows, SCRATCH_WORDS]
@group(0) @binding(B_accounts) var<storage, read_write> accounts: array<u32>;
@group(0) @binding(B_ids) var<storage, read_write> ids: array<u32>; // [rows]
@group(0) @binding(B_step) var<storage, read_write> step: array<u32>;
@group(0) @binding(B_results) var<storage, read_write> results: array<u32>; // [slot, RING, RESULT_WORDS]

struct Peaks {
    best: vec2<u32>, // key, id
    raw_key: u32,
}

var<workgroup> peaks: Peaks;
// Complement of an id, so that the maximum is the lowest id.
var<workgroup> peak_words: array<atomic<u32>, 3>;
var<workgroup> sums: array<f32, WORKGROUP>;
// The best few tiles, then the best few tokens.
var<workgroup> round_keys: array<atomic<u32>, 2u * TOP>;
var<workgroup> round_ids: array<atomic<u32>, 2u * TOP>;
var<workgroup> least_tile: u32;

fn tile_word(row: u32, tile: u32, word: u32) -> u32 {
    return scratch[row * SCRATCH_WORDS + tile * TILE_WORDS + word];
}

// The best adjusted token and the largest raw logit.
fn find_peaks(row: u32, local: u32) -> Peaks {
    var raw = 0u;
    var best = vec2<u32>(0u, NO_SLOT);
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        raw = max(raw, tile_word(row, tile, 2u));
        let other = vec2<u32>(tile_word(row, tile, 0u), tile_word(row, tile, 1u));
        if (precedes(other, best)) {
            best = other;
        }
    }
    atomicMax(&peak_words[0], best.x);
    atomicMax(&peak_words[2], raw);
    workgroupBarrier();
    if (best.x == atomicLoad(&peak_words[0])) {
        atomicMax(&peak_words[1], ~best.y);
    }
    workgroupBarrier();
    if (local == 0u) {
        let id = ~atomicLoad(&peak_words[1]);
        peaks = Peaks(vec2<u32>(atomicLoad(&peak_words[0]), id), atomicLoad(&peak_words[2]));
    }
    return workgroupUniformLoad(&peaks);
}

// ceil(fraction * sum), where `fraction` is below 1; at least 1.
fn share_up(fraction: f32, sum: vec2<u32>) -> vec2<u32> {
    let product = wide_times(sum, u32(fraction * 4294967296.0));
    let share = wide_add(product.yz, vec2<u32>(select(0u, 1u, product.x != 0u), 0u));
    return select(share, vec2<u32>(1u, 0u), all(share == vec2<u32>(0u)));
}

// floor(u / 2^24 * sum)
fn share_down(u: u32, sum: vec2<u32>) -> vec2<u32> {
    let product = wide_times(sum, u);
    return vec2<u32>((product.x >> 24u) | (product.y << 8u), (product.y >> 24u) | (product.z << 8u));
}

// The weight of the tokens that truncation keeps. They are always the first ones in order.
fn truncate(row: u32, slot: u32, all_tokens: vec3<u32>, mu: f32, scale: Scale, local: u32) -> vec2<u32> {
    var left = all_tokens.yz;
    if (slot_has(slot, STAGE_MIROSTAT)) {
        left = weight_kept(Threshold(true, mu, wide_weight(left)), row, scale, local);
        // If no token is kept, the first one is. Its weight is 1.
        return select(left, fixed(1.0), all(left == vec2<u32>(0u)));
    }
    if (slot_has(slot, STAGE_TOP_K) && slot_word(slot, SLOT_TOP_K) < all_tokens.x) {
        left = locate(true, vec2<u32>(slot_word(slot, SLOT_TOP_K), 0u), row, scale, local).weight;
    }
    if (slot_has(slot, STAGE_TOP_P)) {
        left = locate(false, share_up(slot_float(slot, SLOT_TOP_P), left), row, scale, local).weight;
    }
    if (slot_has(slot, STAGE_MIN_P)) {
        let threshold = Threshold(false, slot_float(slot, SLOT_MIN_P), 0.0);
        let heavy = weight_kept(threshold, row, scale, local);
        left = select(left, heavy, wide_less(heavy, left));
    }
    return left;
}

fn row_bits(row: u32, id: u32, processed: bool) -> u32 {
    if (processed) {
        return adjusted[row * VOCAB + id];
    }
    return logits[row * VOCAB + id];
}

// One round of the search for the best tiles or tokens: selects the first of all lanes' candidates in order.
fn best_of_round(round: u32, candidate: vec2<u32>) -> vec2<u32> {
    atomicMax(&round_keys[round], candidate.x);
    workgroupBarrier();
    let key = atomicLoad(&round_keys[round]);
    if (candidate.x == key) {
        atomicMax(&round_ids[round], ~candidate.y);
    }
    workgroupBarrier();
    return vec2<u32>(key, ~atomicLoad(&round_ids[round]));
}

// Finds the TOP best tokens of the raw or the adjusted logits; the second set of rounds holds them.
fn find_top(row: u32, processed: bool, local: u32) {
    var previous = vec2<u32>(0xffffffffu, 0u);
    for (var round = 0u; round < TOP; round++) {
        var best = vec2<u32>(0u, NO_SLOT);
        for (var tile = local; tile < TILES; tile += WORKGROUP) {
            let candidate = vec2<u32>(tile_word(row, tile, select(2u, 0u, processed)), tile);
            if (precedes(previous, candidate) && precedes(candidate, best)) {
                best = candidate;
            }
        }
        previous = best_of_round(round, best);
    }
    if (local == 0u) {
        // The best tokens are in the best tiles.
        least_tile = previous.x;
    }
    clear_tiles(local);
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        if (tile_word(row, tile, select(2u, 0u, processed)) >= least_tile) {
            list_tile(tile);
        }
    }
    let tiles = listed_tiles(local);
    previous = vec2<u32>(0xffffffffu, 0u);
    for (var round = TOP; round < 2u * TOP; round++) {
        var best = vec2<u32>(0u, NO_SLOT);
        for (var i = 0u; i < tiles; i++) {
            let first = tile_list[i] * TILE;
            let end = min(first + TILE, VOCAB);
            for (var id = first + local; id < end; id += WORKGROUP) {
                let candidate = vec2<u32>(key_of(row_bits(row, id, processed)), id);
                if (precedes(previous, candidate) && precedes(candidate, best)) {
                    best = candidate;
                }
            }
        }
        previous = best_of_round(round, best);
    }
}

// ln of the sum of exp(logit - largest) over the raw logits; valid in the first lane.
fn raw_normalizer(row: u32, peak: f32, local: u32) -> f32 {
    var sum = 0.0;
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        let key = tile_word(row, tile, 2u);
        if (is_finite_key(key)) {
            let of_tile = bitcast<f32>(tile_word(row, tile, 3u));
            sum += of_tile * exp(bitcast<f32>(bits_of(key)) - peak);
        }
    }
    sums[local] = sum;
    workgroupBarrier();
    var all_tiles = 0.0;
    if (local == 0u) {
        for (var lane = 0u; lane < WORKGROUP; lane++) {
            all_tiles += sums[lane];
        }
    }
    return log(all_tiles);
}

fn logprob(bits: u32, peak: f32, temperature: f32, normalizer: f32) -> u32 {
    if (bits == NEGATIVE_INFINITY) {
        return bits;
    }
    return bitcast<u32>(min((bitcast<f32>(bits) - peak) / temperature - normalizer, 0.0));
}

// Clears the row's repetition marks, which the sampled token invalidates.
fn clear_marks(account: u32, len: u32, local: u32) {
    let history = account + ACCOUNT_HISTORY;
    if (len < 2u) {
        return;
    }
    let last = accounts[history + len - 1u];
    for (var i = local; i + 1u < len; i += WORKGROUP) {
        let next = accounts[history + i + 1u];
        if (accounts[history + i] == last && next < VOCAB) {
            accounts[account + ACCOUNT_MARKS + next] = 0u;
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup.x;
    let slot = row_slot(row);
    if (slot == NO_SLOT) {
        return;
    }
    let account = slot * ACCOUNT_WORDS;
    let position = accounts[account + ACCOUNT_POSITION];
    var mu = bitcast<f32>(accounts[account + ACCOUNT_MU]);
    let len = accounts[account + ACCOUNT_LEN];
    let at = (slot * RING + position % RING) * RESULT_WORDS;
    let processed = (row_options(row) & ROW_PROCESSED) != 0u;

    // Some runtimes do not clear workgroup memory.
    for (var i = local; i < 2u * TOP; i += WORKGROUP) {
        atomicStore(&round_keys[i], 0u);
        atomicStore(&round_ids[i], 0u);
        if (i < 3u) {
            atomicStore(&peak_words[i], 0u);
        }
    }
    workgroupBarrier();
    let top = find_peaks(row, local);
    let is_valid = is_finite_key(top.raw_key);
    let is_alive = is_valid && is_finite_key(top.best.x);
    var outcome = select(INVALID_TOKEN, DEAD_END, is_valid);
    if (is_alive) {
        outcome = top.best.y;
        if (local == 0u) {
            // Fallback in case bins and tokens disagree.
            located = Place(top.best.x, top.best.y, fixed(1.0));
        }
        let scale = scale_of(slot, bitcast<f32>(bits_of(top.best.x)));
        var all_tokens = vec3<u32>(0u);
        if (row_weighs(row, slot)) {
            all_tokens = total(row, local);
        }
        if (!slot_has(slot, STAGE_GREEDY)) {
            let left = truncate(row, slot, all_tokens, mu, scale, local);
            let seed = vec2<u32>(slot_word(slot, SLOT_SEED), slot_word(slot, SLOT_SEED + 1u));
            let u = uniform_24(seed, slot_word(slot, SLOT_CANDIDATE), position);
            let goal = wide_add(share_down(u, left), vec2<u32>(1u, 0u));
            let place = locate(false, goal, row, scale, local);
            outcome = place.id;
            if (slot_has(slot, STAGE_MIROSTAT)) {
                let z = bitcast<f32>(bits_of(place.key));
                let surprise = -log2(weight_of(z, scale) / wide_weight(all_tokens.yz));
                mu -= slot_float(slot, SLOT_RATE) * (surprise - slot_float(slot, SLOT_TARGET));
            }
        }
        if ((row_options(row) & ROW_SCORED) != 0u) {
            let raw_peak = bitcast<f32>(bits_of(top.raw_key));
            let raw = raw_normalizer(row, raw_peak, local);
            find_top(row, processed, local);
            if (local == 0u) {
                results[at + 1u] = logprob(logits[row * VOCAB + outcome], raw_peak, 1.0, raw);
                let peak = select(raw_peak, scale.peak, processed);
                let temperature = select(1.0, scale.temperature, processed);
                var normalizer = raw;
                if (processed) {
                    normalizer = log(wide_weight(all_tokens.yz));
                }
                let bits = row_bits(row, outcome, processed);
                results[at + 2u] = logprob(bits, peak, temperature, normalizer);
                for (var i = 0u; i < TOP; i++) {
                    let key = atomicLoad(&round_keys[TOP + i]);
                    results[at + 4u + i] = ~atomicLoad(&round_ids[TOP + i]);
                    results[at + 4u + TOP + i] = logprob(bits_of(key), peak, temperature, normalizer);
                }
            }
        }
    }
    if (slot_has(slot, STAGE_DRY)) {
        clear_marks(account, len, local);
    }
    storageBarrier();
    if (local == 0u) {
        // A failed slot stays failed until the host writes its account.
        if (accounts[account + ACCOUNT_FAILED] == 0u) {
            results[at] = outcome;
            results[at + 3u] = bitcast<u32>(mu);
            if (is_alive) {
                accounts[account + ACCOUNT_POSITION] = position + 1u;
                accounts[account + ACCOUNT_MU] = bitcast<u32>(mu);
                if (slot_has(slot, STAGE_DRY) && len < HISTORY_TOKENS) {
                    accounts[account + ACCOUNT_HISTORY + len] = outcome;
                    accounts[account + ACCOUNT_LEN] = len + 1u;
                }
                if (slot_has(slot, STAGE_REPETITION | STAGE_COUNTS)) {
                    accounts[account + ACCOUNT_COUNTS + outcome] += 1u;
                }
            } else {
                accounts[account + ACCOUNT_FAILED] = 1u;
            }
        }
        ids[row] = select(0u, outcome, is_alive);
        step[STEP_ROWS + row * ROW_WORDS] += 1u;
    }
}
