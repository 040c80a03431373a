// A tile of up to TILE_PAIRS pairs of one expert, and what they read: see group_experts.wgsl.
@group(0) @binding(B_groups) var<storage, read> groups: array<u32>; // [tiles, 1 + TILE_PAIRS]
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [pairs / PAIRS_PER_INPUT, COLS / 4]

// NONE for a tile that is not used.
fn tile_expert(tile: u32) -> u32 {
    return groups[tile * (1u + TILE_PAIRS)];
}

// NONE past a tile's last pair.
fn tile_pair(tile: u32, i: u32) -> u32 {
    return groups[tile * (1u + TILE_PAIRS) + 1u + i];
}

// The row of x that a pair reads; some row for NONE.
fn tile_input(tile: u32, i: u32) -> u32 {
    return min(tile_pair(tile, i) / PAIRS_PER_INPUT, arrayLength(&x) / (COLS / 4u) - 1u);
}
