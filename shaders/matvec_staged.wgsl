// matvec.wgsl with bit-identical results, where a workgroup reads the inputs of STAGED blocks into its own memory first.
// Neighbouring lanes read neighbouring elements then; where each lane reads its own block, every load of a subgroup
// touches as many cache lines as it has lanes.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = (workgroup.y * workgroups.x + workgroup.x) * (WORKGROUP / LANES) + local / LANES;
    let first_row = group * ROWS_PER_GROUP;
    var sums: array<Sum, ROWS_PER_GROUP>;
    var sum_of_squares = 0.0;
    var inputs: Block;
    for (var first = 0u; first < BLOCKS; first += STAGED) {
        stage_inputs(first, local);
        let end = min(first + STAGED, BLOCKS);
        for (var block = first + local % LANES; block < end; block += LANES) {
            sum_of_squares += load_block(0u, block, &inputs);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = min(first_row + r, ROWS - 1u);
                sums[r] += dot_block(row * BLOCKS + block, &inputs);
            }
        }
    }
    reduce_lanes(&sums, &sum_of_squares, local);
    if (local % LANES == 0u) {
        let scale = input_scale(sum_of_squares);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            if (first_row + r < ROWS) {
                store_sum(0u, first_row + r, sums[r] * scale);
            }
        }
    }
}
