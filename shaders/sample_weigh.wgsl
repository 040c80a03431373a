// Sorts the weights of every row into bins: the number of tokens in each and their total weight. PART
// logits per workgroup.
@group(0) @binding(B_adjusted) var<storage, read> adjusted: array<u32>; // [rows, VOCAB], bits of f32
@group(0) @binding(B_scratch) var<storage, read_write> scratch: array<atomic<u32>>;

var<workgroup> peak_key: atomic<u32>;
// Per bin: count, low word of the weight, high word of the weight.
var<workgroup> bins: array<atomic<u32>, 3u * BINS>;

fn add_to_bin(bin: u32, count: u32, weight: vec2<u32>) {
    atomicAdd(&bins[3u * bin], count);
    let low = atomicAdd(&bins[3u * bin + 1u], weight.x);
    atomicAdd(&bins[3u * bin + 2u], weight.y + select(0u, 1u, low + weight.x < low));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = workgroup.y;
    let slot = row_slot(row);
    if (slot == NO_SLOT) {
        return;
    }
    if (!row_weighs(row, slot)) {
        return;
    }
    // Some runtimes do not clear workgroup memory.
    if (local == 0u) {
        atomicStore(&peak_key, 0u);
    }
    for (var i = local; i < 3u * BINS; i += WORKGROUP) {
        atomicStore(&bins[i], 0u);
    }
    workgroupBarrier();
    let tiles = row * SCRATCH_WORDS;
    var best = 0u;
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        best = max(best, atomicLoad(&scratch[tiles + tile * TILE_WORDS]));
    }
    atomicMax(&peak_key, best);
    workgroupBarrier();
    let key = atomicLoad(&peak_key);
    if (is_finite_key(key)) {
        let scale = scale_of(slot, bitcast<f32>(bits_of(key)));
        let end = min(workgroup.x * PART + PART, VOCAB);
        var tail = 0u;
        var tail_weight = vec2<u32>(0u);
        for (var id = workgroup.x * PART + local; id < end; id += WORKGROUP) {
            let bits = adjusted[row * VOCAB + id];
            if (in_reach(bits, scale)) {
                let z = bitcast<f32>(bits);
                let distance = distance_of(z, scale);
                let weight = fixed(weight_of(z, scale));
                if (distance < TAIL) {
                    add_to_bin(bin_of(distance), 1u, weight);
                } else {
                    tail++;
                    tail_weight = wide_add(tail_weight, weight);
                }
            }
        }
        if (tail > 0u) {
            add_to_bin(BINS - 1u, tail, tail_weight);
        }
    }
    workgroupBarrier();
    for (var bin = local; bin < BINS; bin += WORKGROUP) {
        let count = atomicLoad(&bins[3u * bin]);
        if (count > 0u) {
            let at = row * SCRATCH_WORDS + SCRATCH_BINS + 3u * bin;
            let weight = atomicLoad(&bins[3u * bin + 1u]);
            atomicAdd(&scratch[at], count);
            let low = atomicAdd(&scratch[at + 1u], weight);
            let carry = select(0u, 1u, low + weight < low);
            atomicAdd(&scratch[at + 2u], atomicLoad(&bins[3u * bin + 2u]) + carry);
        }
    }
}
