// Stages 1 to 5 of the sampler chain for every row. For each tile of TILE logits, writes what later kernels
// need: the best adjusted logit, the largest raw logit and the sum of raw exponentials. Also clears the
// row's bins. One workgroup per tile.
@group(0) @binding(B_logits) var<storage, read> logits: array<u32>; // [rows, VOCAB], bits of f32
@group(0) @binding(B_accounts) var<storage, read> accounts: array<u32>;
@group(0) @binding(B_adjusted) var<storage, read_write> adjusted: array<u32>; // as logits
@group(0) @binding(B_scratch) var<storage, read_write> scratch: array<u32>; // [rows, SCRATCH_WORDS]

const LARGEST: f32 = 3.4028234e38;

var<workgroup> raw_key: atomic<u32>;
var<workgroup> best_key: atomic<u32>;
// Complement of an id, so that the maximum is the lowest id.
var<workgroup> best_id: atomic<u32>;
var<workgroup> sums: array<f32, WORKGROUP>;

// The bias of an id; the table is sorted by id.
fn bias_of(slot: u32, id: u32) -> f32 {
    var low = 0u;
    var high = slot_word(slot, SLOT_BIASES);
    while (low < high) {
        let middle = (low + high) / 2u;
        if (slot_word(slot, SLOT_BIAS_IDS + middle) < id) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    if (low < slot_word(slot, SLOT_BIASES) && slot_word(slot, SLOT_BIAS_IDS + low) == id) {
        return slot_float(slot, SLOT_BIAS_VALUES + low);
    }
    return 0.0;
}

// Keeps finite logits finite.
fn repeated(z: f32, penalty: f32) -> f32 {
    if (z > 0.0) {
        if (penalty < 1.0 && z >= LARGEST * penalty) {
            return LARGEST;
        }
        return z / penalty;
    }
    if (penalty > 1.0 && z <= -LARGEST / penalty) {
        return -LARGEST;
    }
    return z * penalty;
}

fn adjust(row: u32, slot: u32, id: u32, bits: u32) -> u32 {
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        return bits;
    }
    if ((row_options(row) & ROW_MASKED) != 0u && !slot_set_has(slot, SLOT_MASK, id)) {
        return NEGATIVE_INFINITY;
    }
    let stages = slot_word(slot, SLOT_STAGES);
    var z = bitcast<f32>(bits);
    if ((stages & STAGE_BIAS) != 0u) {
        z += bias_of(slot, id);
    }
    if ((stages & (STAGE_REPETITION | STAGE_COUNTS)) != 0u) {
        let count = accounts[slot * ACCOUNT_WORDS + ACCOUNT_COUNTS + id];
        if ((stages & STAGE_REPETITION) != 0u && count != 0u) {
            z = repeated(z, slot_float(slot, SLOT_REPETITION));
        }
        let generated = count & ~COUNT_SEEN;
        if ((stages & STAGE_COUNTS) != 0u && generated != 0u) {
            z -= f32(generated) * slot_float(slot, SLOT_FREQUENCY) + slot_float(slot, SLOT_PRESENCE);
        }
    }
    if ((stages & STAGE_DRY) != 0u) {
        let length = accounts[slot * ACCOUNT_WORDS + ACCOUNT_MARKS + id];
        if (length != 0u) {
            let penalty = slot_float(slot, SLOT_DRY_PENALTIES + length);
            if (z <= penalty - LARGEST) {
                z = -LARGEST;
            } else {
                z -= penalty;
            }
        }
    }
    return bitcast<u32>(z);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup.x;
    let row = workgroup.y;
    let slot = row_slot(row);
    if (slot == NO_SLOT) {
        return;
    }
    if (local == 0u) {
        // Some runtimes do not clear workgroup memory.
        atomicStore(&raw_key, 0u);
        atomicStore(&best_key, 0u);
        atomicStore(&best_id, 0u);
    }
    workgroupBarrier();
    let bins = row * SCRATCH_WORDS + SCRATCH_BINS;
    for (var i = tile * WORKGROUP + local; i < 3u * BINS; i += TILES * WORKGROUP) {
        scratch[bins + i] = 0u;
    }
    let end = min(tile * TILE + TILE, VOCAB);
    var raw = 0u;
    var best = vec2<u32>(0u);
    if (slot_has(slot, STAGES_ADJUSTING) || (row_options(row) & ROW_MASKED) != 0u) {
        for (var id = tile * TILE + local; id < end; id += WORKGROUP) {
            let bits = logits[row * VOCAB + id];
            raw = max(raw, key_of(bits));
            let changed = adjust(row, slot, id, bits);
            adjusted[row * VOCAB + id] = changed;
            let key = key_of(changed);
            if (key > best.x) {
                best = vec2<u32>(key, id);
            }
        }
    } else {
        for (var id = tile * TILE + local; id < end; id += WORKGROUP) {
            let bits = logits[row * VOCAB + id];
            adjusted[row * VOCAB + id] = bits;
            let key = key_of(bits);
            if (key > best.x) {
                best = vec2<u32>(key, id);
            }
        }
        raw = best.x;
    }
    atomicMax(&raw_key, raw);
    atomicMax(&best_key, best.x);
    workgroupBarrier();
    if (best.x == atomicLoad(&best_key)) {
        atomicMax(&best_id, ~best.y);
    }
    if ((row_options(row) & ROW_SCORED) != 0u) {
        let peak = bitcast<f32>(bits_of(atomicLoad(&raw_key)));
        var sum = 0.0;
        for (var id = tile * TILE + local; id < end; id += WORKGROUP) {
            let bits = logits[row * VOCAB + id];
            if ((bits & 0x7f800000u) != 0x7f800000u) {
                sum += exp(bitcast<f32>(bits) - peak);
            }
        }
        sums[local] = sum;
    }
    workgroupBarrier();
    if (local == 0u) {
        let at = row * SCRATCH_WORDS + tile * TILE_WORDS;
        var sum = 0.0;
        if ((row_options(row) & ROW_SCORED) != 0u) {
            for (var lane = 0u; lane < WORKGROUP; lane++) {
                sum += sums[lane];
            }
        }
        scratch[at] = atomicLoad(&best_key);
        scratch[at + 1u] = ~atomicLoad(&best_id);
        scratch[at + 2u] = atomicLoad(&raw_key);
        scratch[at + 3u] = bitcast<u32>(sum);
    }
}
