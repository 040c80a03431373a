// out[token, row] = dot(weights[row], x[token]). A gated layer combines the products with gate and up
// instead (shared/rows). A workgroup computes a tile of TILE_TOKENS tokens by TILE_ROWS lines of weights.
// The lines are rows of one matrix, or half as many rows of each of two. LANE_ROWS = 4 / MATRICES.

const MATRIX_ROWS: u32 = TILE_ROWS / MATRICES;

fn load_row(first_row: u32, line: u32, block: u32, out: ptr<function, Block>) {
    let row = min(first_row + line % MATRIX_ROWS, ROWS - 1u);
    load_line(line, TILE_ROWS, row * BLOCKS + block, out);
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first_row = workgroup.x * MATRIX_ROWS;
    let first_token = workgroup.y * TILE_TOKENS;
    var sums: array<vec4<f32>, LANE_TOKENS>;
    multiply_tiles(first_row, first_token, local, &sums);
    // Not a constant, so that steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
        let token = first_token + t * TOKEN_LANES + local / ROW_LANES;
        for (var r = 0u; r < LANE_ROWS; r++) { // unrolled
            let row = first_row + r * ROW_LANES + local % ROW_LANES;
            if (token < tokens && row < ROWS) {
                store_sum(token, row, sum_of_four(sums[t], r));
            }
        }
    }
}
