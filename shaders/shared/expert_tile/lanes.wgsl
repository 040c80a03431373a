// A tile of 16 pairs by 8 lines of weights in the registers of one lane, without workgroup memory or
// barriers, as in tile/lane.wgsl. Four neighbouring lanes have different lines. Each of them loads the
// inputs of one pair and broadcasts them to the other three.

// The row of x that a lane loads from for each group of four pairs.
fn loaded_inputs(tile: u32, lane: u32) -> vec4<u32> {
    return vec4<u32>(
        tile_input(tile, lane % 4u),
        tile_input(tile, lane % 4u + 4u),
        tile_input(tile, lane % 4u + 8u),
        tile_input(tile, lane % 4u + 12u),
    );
}

// Groups of four pairs that are not all NONE.
fn tile_fours(tile: u32) -> u32 {
    var fours = 1u;
    for (var i = 1u; i < 4u; i++) {
        fours += select(0u, 1u, tile_pair(tile, i * 4u) != NONE);
    }
    return fours;
}

// Adds the products of a block: sums[pair, half of the lines] += lines * input of the pair.
fn add_block(
    inputs: vec4<u32>,
    fours: u32,
    block: u32,
    rows: ptr<function, array<array<vec4<f32>, 8>, 8>>,
    sums: ptr<function, array<vec4<f32>, 32>>,
) {
    for (var i = 0u; i < 8u; i++) { // unrolled
        let column = block * 8u + i;
        let lower = mat4x4<f32>((*rows)[0][i], (*rows)[1][i], (*rows)[2][i], (*rows)[3][i]);
        let upper = mat4x4<f32>((*rows)[4][i], (*rows)[5][i], (*rows)[6][i], (*rows)[7][i]);
        for (var four = 0u; four < 4u; four++) { // unrolled
            if (four < fours) {
                var mine = vec4<f32>(0.0);
                if (COLS % 32u == 0u || column < COLS / 4u) {
                    mine = x[inputs[four] * (COLS / 4u) + column];
                }
                for (var p = 0u; p < 4u; p++) { // unrolled
                    let value = quadBroadcast(mine, p);
                    (*sums)[four * 8u + p * 2u] += value * lower;
                    (*sums)[four * 8u + p * 2u + 1u] += value * upper;
                }
            }
        }
    }
}
