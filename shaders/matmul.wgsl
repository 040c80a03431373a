// out[token, row] = dot(weights[row], x[token]), a tile of both per workgroup.

fn load_row(first_row: u32, line: u32, block: u32, out: ptr<function, Block>) {
    weights_load(min(first_row + line, ROWS - 1u) * BLOCKS + block, out);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first_row = workgroup.x * TILE_ROWS;
    let first_token = workgroup.y * TILE_TOKENS;
    var sums: array<vec4<f32>, LANE_TOKENS>;
    multiply_tiles(first_row, first_token, local, &sums);
    // Not a constant: steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
        let token = first_token + t * TOKEN_LANES + local / ROW_LANES;
        for (var r = 0u; r < 4u; r++) { // unrolled
            let row = first_row + r * ROW_LANES + local % ROW_LANES;
            if (token < tokens && row < ROWS) {
                store(token * ROWS + row, row, sums[t][r]);
            }
        }
    }
}
