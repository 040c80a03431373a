// Finds positions in a row's order of tokens without sorting the row. The position is the first token at
// which the tokens up to and including it reach a given number or weight. The search selects a bin, then
// finer bins while the bin holds more than GATHER tokens, and then compares all pairs of the rest. The
// binding `scratch` holds bins and tiles; `adjusted` holds the logits.

// Finer bins are formed by the position within a bin, then by 4 bytes of the key and 3 of the id.
const FINER: u32 = 8u;

// A token, and the number and weight of the tokens up to it.
struct Place {
    key: u32,
    id: u32,
    weight: vec2<u32>,
}

struct Walked {
    bin: u32,
    // Number of tokens in the bin.
    count: u32,
    // Count and weight before the bin and up to its end.
    before: vec3<u32>,
    through: vec3<u32>,
}

// Per bin: count, low word of the weight, high word of the weight.
var<workgroup> bins: array<atomic<u32>, 3u * BINS>;
var<workgroup> chunks: array<vec3<u32>, CHUNKS>;
var<workgroup> walked: Walked;
// Tiles that may hold the token.
var<workgroup> tile_list: array<u32, TILES>;
var<workgroup> tile_list_len: atomic<u32>;
var<workgroup> gathered: array<vec4<u32>, GATHER>; // key, id, weight
var<workgroup> gathered_len: atomic<u32>;
var<workgroup> located: Place;
var<workgroup> words: array<atomic<u32>, 2>;
var<workgroup> uniform_word: u32;

fn extended(sum: vec3<u32>, count: u32, weight: vec2<u32>) -> vec3<u32> {
    return vec3<u32>(sum.x + count, wide_add(sum.yz, weight));
}

fn measure(sum: vec3<u32>, by_count: bool) -> vec2<u32> {
    return select(sum.yz, vec2<u32>(sum.x, 0u), by_count);
}

fn bin_sum(bin: u32) -> vec3<u32> {
    let at = 3u * bin;
    return vec3<u32>(atomicLoad(&bins[at]), atomicLoad(&bins[at + 1u]), atomicLoad(&bins[at + 2u]));
}

// Copies the row's bins.
fn take_bins(row: u32, local: u32) {
    for (var i = local; i < 3u * BINS; i += WORKGROUP) {
        atomicStore(&bins[i], scratch[row * SCRATCH_WORDS + SCRATCH_BINS + i]);
    }
    workgroupBarrier();
}

// The bin in which the goal is reached, or the last one that is not empty.
fn walk(by_count: bool, goal: vec2<u32>, start: vec3<u32>, local: u32) -> Walked {
    for (var chunk = local; chunk < CHUNKS; chunk += WORKGROUP) {
        var sum = vec3<u32>(0u);
        for (var i = 0u; i < 8u; i++) {
            let part = bin_sum(chunk * 8u + i);
            sum = extended(sum, part.x, part.yz);
        }
        chunks[chunk] = sum;
    }
    workgroupBarrier();
    if (local == 0u) {
        var before = start;
        var found = 0u;
        var at = start;
        for (var chunk = 0u; chunk < CHUNKS; chunk++) {
            let sum = chunks[chunk];
            if (sum.x > 0u) {
                found = chunk;
                before = at;
                at = extended(at, sum.x, sum.yz);
                if (!wide_less(measure(at, by_count), goal)) {
                    break;
                }
            }
        }
        at = before;
        for (var i = 0u; i < 8u; i++) {
            let sum = bin_sum(found * 8u + i);
            if (sum.x > 0u) {
                let through = extended(at, sum.x, sum.yz);
                walked = Walked(found * 8u + i, sum.x, at, through);
                at = through;
                if (!wide_less(measure(at, by_count), goal)) {
                    break;
                }
            }
        }
    }
    return workgroupUniformLoad(&walked);
}

// The number of all tokens in reach, and their weight.
fn total(row: u32, local: u32) -> vec3<u32> {
    take_bins(row, local);
    return walk(true, vec2<u32>(0xffffffffu), vec3<u32>(0u), local).through;
}

// The remaining tokens: those of a bin that share digits with the position.
struct Members {
    bin: u32,
    // Number of levels of finer bins so far.
    depth: u32,
    part: u32,
    // The known bits of the complement of the key and of the id, and which bits are known.
    known: vec2<u32>,
    mask: vec2<u32>,
}

fn is_member(members: Members, distance: f32, place: vec2<u32>) -> bool {
    return bin_of(distance) == members.bin
        && (members.depth == 0u || part_of_bin(distance) == members.part)
        && all((place & members.mask) == members.known);
}

// The next digit that distinguishes members. It increases along the order. `place` holds the complement of
// the key, and the id.
fn digit_of(depth: u32, distance: f32, place: vec2<u32>) -> u32 {
    if (depth == 0u) {
        return part_of_bin(distance);
    }
    if (depth < 5u) {
        return (place.x >> (8u * (4u - depth))) & 255u;
    }
    return (place.y >> (8u * (7u - depth))) & 255u;
}

fn narrowed(members: Members, digit: u32) -> Members {
    var next = members;
    next.depth = members.depth + 1u;
    if (members.depth == 0u) {
        next.part = digit;
    } else if (members.depth < 5u) {
        let shift = 8u * (4u - members.depth);
        next.known.x |= digit << shift;
        next.mask.x |= 255u << shift;
    } else {
        let shift = 8u * (7u - members.depth);
        next.known.y |= digit << shift;
        next.mask.y |= 255u << shift;
    }
    return next;
}

fn clear_tiles(local: u32) {
    if (local == 0u) {
        atomicStore(&tile_list_len, 0u);
        atomicStore(&gathered_len, 0u);
    }
    workgroupBarrier();
}

fn list_tile(tile: u32) {
    tile_list[atomicAdd(&tile_list_len, 1u)] = tile;
}

// Number of listed tiles.
fn listed_tiles(local: u32) -> u32 {
    workgroupBarrier();
    if (local == 0u) {
        uniform_word = atomicLoad(&tile_list_len);
    }
    return workgroupUniformLoad(&uniform_word);
}

// The position at which the goal is reached, or the last position.
fn locate(by_count: bool, goal: vec2<u32>, row: u32, scale: Scale, local: u32) -> Place {
    take_bins(row, local);
    var at = walk(by_count, goal, vec3<u32>(0u), local);
    var members = Members(at.bin, 0u, 0u, vec2<u32>(0u), vec2<u32>(0u));
    clear_tiles(local);
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        let bits = bits_of(scratch[row * SCRATCH_WORDS + tile * TILE_WORDS]);
        if (in_reach(bits, scale) && bin_of(distance_of(bitcast<f32>(bits), scale)) <= at.bin) {
            list_tile(tile);
        }
    }
    let tiles = listed_tiles(local);
    for (var depth = 0u; depth < FINER && at.count > GATHER; depth++) {
        for (var i = local; i < 3u * BINS; i += WORKGROUP) {
            atomicStore(&bins[i], 0u);
        }
        workgroupBarrier();
        for (var i = 0u; i < tiles; i++) {
            let first = tile_list[i] * TILE;
            let end = min(first + TILE, VOCAB);
            for (var id = first + local; id < end; id += WORKGROUP) {
                let bits = adjusted[row * VOCAB + id];
                if (in_reach(bits, scale)) {
                    let z = bitcast<f32>(bits);
                    let distance = distance_of(z, scale);
                    let place = vec2<u32>(~key_of(bits), id);
                    if (is_member(members, distance, place)) {
                        let bin = 3u * digit_of(members.depth, distance, place);
                        let weight = fixed(weight_of(z, scale));
                        atomicAdd(&bins[bin], 1u);
                        let low = atomicAdd(&bins[bin + 1u], weight.x);
                        atomicAdd(&bins[bin + 2u], weight.y + select(0u, 1u, low + weight.x < low));
                    }
                }
            }
        }
        workgroupBarrier();
        at = walk(by_count, goal, at.before, local);
        members = narrowed(members, at.bin);
    }
    for (var i = 0u; i < tiles; i++) {
        let first = tile_list[i] * TILE;
        let end = min(first + TILE, VOCAB);
        for (var id = first + local; id < end; id += WORKGROUP) {
            let bits = adjusted[row * VOCAB + id];
            if (in_reach(bits, scale)) {
                let z = bitcast<f32>(bits);
                if (is_member(members, distance_of(z, scale), vec2<u32>(~key_of(bits), id))) {
                    let slot = atomicAdd(&gathered_len, 1u);
                    if (slot < GATHER) {
                        gathered[slot] = vec4<u32>(key_of(bits), id, fixed(weight_of(z, scale)));
                    }
                }
            }
        }
    }
    workgroupBarrier();
    let count = min(atomicLoad(&gathered_len), GATHER);
    for (var i = local; i < count; i += WORKGROUP) {
        let own = gathered[i];
        var before = at.before;
        var rank = 0u;
        for (var j = 0u; j < count; j++) {
            if (precedes(gathered[j].xy, own.xy)) {
                before = extended(before, 1u, gathered[j].zw);
                rank++;
            }
        }
        let through = extended(before, 1u, own.zw);
        let reaches = !wide_less(measure(through, by_count), goal);
        let is_first = reaches && wide_less(measure(before, by_count), goal);
        if (is_first || (!reaches && rank + 1u == count)) {
            located = Place(own.x, own.y, through.yz);
        }
    }
    return workgroupUniformLoad(&located);
}

// Keeps tokens with a weight of at least `limit`, or with a surprise of at most `limit` bits.
struct Threshold {
    by_surprise: bool,
    limit: f32,
    // Total weight.
    total: f32,
}

fn keeps(threshold: Threshold, weight: f32) -> bool {
    if (threshold.by_surprise) {
        return -log2(weight / threshold.total) <= threshold.limit;
    }
    return weight >= threshold.limit;
}

// The weight of all tokens that a threshold keeps.
fn weight_kept(threshold: Threshold, row: u32, scale: Scale, local: u32) -> vec2<u32> {
    if (local < 2u) {
        atomicStore(&words[local], 0u);
    }
    clear_tiles(local);
    for (var tile = local; tile < TILES; tile += WORKGROUP) {
        let bits = bits_of(scratch[row * SCRATCH_WORDS + tile * TILE_WORDS]);
        if (in_reach(bits, scale) && keeps(threshold, weight_of(bitcast<f32>(bits), scale))) {
            list_tile(tile);
        }
    }
    let tiles = listed_tiles(local);
    var sum = vec2<u32>(0u);
    for (var i = 0u; i < tiles; i++) {
        let first = tile_list[i] * TILE;
        let end = min(first + TILE, VOCAB);
        for (var id = first + local; id < end; id += WORKGROUP) {
            let bits = adjusted[row * VOCAB + id];
            if (in_reach(bits, scale)) {
                let weight = weight_of(bitcast<f32>(bits), scale);
                if (keeps(threshold, weight)) {
                    sum = wide_add(sum, fixed(weight));
                }
            }
        }
    }
    let low = atomicAdd(&words[0], sum.x);
    atomicAdd(&words[1], sum.y + select(0u, 1u, low + sum.x < low));
    workgroupBarrier();
    return vec2<u32>(atomicLoad(&words[0]), atomicLoad(&words[1]));
}
