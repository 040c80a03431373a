// Tiles of up to TILE_PAIRS pairs of one expert (see group_experts.wgsl) and their inputs.
@group(0) @binding(B_groups) var<storage, read> groups: array<u32>; // [tiles, 1 + TILE_PAIRS]
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [pairs / PAIRS_PER_INPUT, COLS / 4]

// The expert of a tile; NONE for an unused tile.
fn tile_expert(tile: u32) -> u32 {
    return groups[tile * (1u + TILE_PAIRS)];
}

// A pair of a tile; NONE past the last one.
fn tile_pair(tile: u32, i: u32) -> u32 {
    return groups[tile * (1u + TILE_PAIRS) + 1u + i];
}

// The row of x that a pair reads; any valid row for NONE.
fn tile_input(tile: u32, i: u32) -> u32 {
    return min(tile_pair(tile, i) / PAIRS_PER_INPUT, arrayLength(&x) / (COLS / 4u) - 1u);
}
