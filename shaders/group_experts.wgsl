// Sorts pairs (a token and one of its experts) into tiles of up to TILE_PAIRS pairs of one expert, for
// kernels that read an expert's weights once per tile. One workgroup with a lane per expert.
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [pairs]
@group(0) @binding(B_groups) var<storage, read_write> groups: array<u32>; // [tiles, 1 + TILE_PAIRS]

var<workgroup> tile_counts: array<u32, EXPERTS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) local: u32) {
    let pairs = arrayLength(&experts);
    for (var expert = local; expert < EXPERTS; expert += WORKGROUP) {
        var count = 0u;
        for (var pair = 0u; pair < pairs; pair++) {
            count += select(0u, 1u, experts[pair] == expert);
        }
        tile_counts[expert] = (count + TILE_PAIRS - 1u) / TILE_PAIRS;
    }
    workgroupBarrier();
    for (var expert = local; expert < EXPERTS; expert += WORKGROUP) {
        var first_tile = 0u;
        for (var before = 0u; before < expert; before++) {
            first_tile += tile_counts[before];
        }
        var count = 0u;
        for (var pair = 0u; pair < pairs; pair++) {
            if (experts[pair] == expert) {
                put(first_tile, count, pair);
                count++;
            }
        }
        for (; count < tile_counts[expert] * TILE_PAIRS; count++) {
            put(first_tile, count, NONE);
        }
        for (var i = 0u; i < tile_counts[expert]; i++) {
            groups[(first_tile + i) * (1u + TILE_PAIRS)] = expert;
        }
    }
    // The buffer is sized for the worst case. Unused tiles are marked with NONE.
    var used_tiles = 0u;
    for (var expert = 0u; expert < EXPERTS; expert++) {
        used_tiles += tile_counts[expert];
    }
    let used_words = used_tiles * (1u + TILE_PAIRS);
    for (var at = used_words + local; at < arrayLength(&groups); at += WORKGROUP) {
        groups[at] = NONE;
    }
}

fn put(first_tile: u32, i: u32, pair: u32) {
    let tile = first_tile + i / TILE_PAIRS;
    groups[tile * (1u + TILE_PAIRS) + 1u + i % TILE_PAIRS] = pair;
}
