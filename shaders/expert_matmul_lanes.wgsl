// expert_matmul.wgsl for devices where barriers cost more than arithmetic: each lane computes 16 pairs by
// 8 lines of weights on its own. LANE_ROWS = 8 / MATRICES.

var<private> own_expert: u32; // whose products store_sum gets

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup.y;
    let expert = tile_expert(tile);
    if (expert == NONE) {
        return;
    }
    own_expert = expert;
    let first_row = (workgroup.x * WORKGROUP + local) * LANE_ROWS;
    let inputs = loaded_inputs(tile, local);
    let fours = tile_fours(tile);
    var sums: array<vec4<f32>, 32>; // [pair, 8 lines / 4]
    var lines: array<array<vec4<f32>, 8>, 8>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        for (var line = 0u; line < 8u; line++) { // unrolled
            let row = expert * ROWS + min(first_row + line % LANE_ROWS, ROWS - 1u);
            load_line(line, 8u, row * BLOCKS + block, &values);
            lines[line] = values;
        }
        add_block(inputs, fours, block, &lines, &sums);
    }
    // A copy, because an array that is indexed by a variable does not stay in registers.
    var results = sums;
    for (var p = 0u; p < fours * 4u; p++) {
        let pair = tile_pair(tile, p);
        if (pair != NONE) {
            for (var row = first_row; row < min(first_row + LANE_ROWS, ROWS); row++) {
                let sum = sum_of_eight(results[p * 2u], results[p * 2u + 1u], row - first_row);
                store_sum(pair, row, sum);
            }
        }
    }
}
