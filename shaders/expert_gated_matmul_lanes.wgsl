// As expert_gated_matmul.wgsl, for devices where barriers cost more than arithmetic: each lane
// computes 16 pairs by 4 rows of both matrices on its own.

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
    let first_row = (workgroup.x * WORKGROUP + local) * 4u;
    let inputs = loaded_inputs(tile, local);
    let fours = tile_fours(tile);
    var sums: array<vec4<f32>, 32>; // [pair, gates | ups]
    var rows: array<array<vec4<f32>, 8>, 8>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        for (var r = 0u; r < 4u; r++) { // unrolled
            let row = expert * ROWS + min(first_row + r, ROWS - 1u);
            gate_load(row * BLOCKS + block, &values);
            rows[r] = values;
            up_load(row * BLOCKS + block, &values);
            rows[r + 4u] = values;
        }
        add_block(inputs, fours, block, &rows, &sums);
    }
    // A copy: what is indexed by variables does not stay in registers.
    var results = sums;
    for (var p = 0u; p < fours * 4u; p++) {
        let pair = tile_pair(tile, p);
        if (pair != NONE) {
            for (var row = first_row; row < min(first_row + 4u, ROWS); row++) {
                let gate = results[p * 2u][row - first_row];
                store(pair * ROWS + row, row, activate(gate) * results[p * 2u + 1u][row - first_row]);
            }
        }
    }
}
