// matmul.wgsl for devices where barriers cost more than arithmetic: each lane computes a tile of 16 tokens
// by 8 lines of weights on its own. LANE_ROWS = 8 / MATRICES.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Not a constant, so that steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    let first_row = (workgroup.x * WORKGROUP + local) * LANE_ROWS;
    let first_token = workgroup.y * TILE_TOKENS;
    var sums: array<vec4<f32>, 32>; // [token, 8 lines / 4]
    var lines: array<array<vec4<f32>, 8>, 8>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        for (var line = 0u; line < 8u; line++) { // unrolled
            let row = min(first_row + line % LANE_ROWS, ROWS - 1u);
            load_line(line, 8u, row * BLOCKS + block, &values);
            lines[line] = values;
        }
        add_block(first_token, block, local, &lines, &sums);
    }
    // A copy, because an array that is indexed by a variable does not stay in registers.
    var results = sums;
    for (var token = first_token; token < min(first_token + TILE_TOKENS, tokens); token++) {
        let at = (token - first_token) * 2u;
        for (var row = first_row; row < min(first_row + LANE_ROWS, ROWS); row++) {
            store_sum(token, row, sum_of_eight(results[at], results[at + 1u], row - first_row));
        }
    }
}
