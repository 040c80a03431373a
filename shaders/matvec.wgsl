// out[row] = dot(weights[row], input) for one token. A gated layer combines the products with gate and up
// instead (shared/rows). LANES lanes share ROWS_PER_GROUP rows. LANES_PER_BLOCK neighbours share a block
// (shared/block_part), and the group steps over the blocks of each row.

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
    choose_part(local);
    for (var block = local % LANES / LANES_PER_BLOCK; block < BLOCKS; block += LANES / LANES_PER_BLOCK) {
        sum_of_squares += load_block(0u, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = min(first_row + r, ROWS - 1u);
            sums[r] += dot_block(row * BLOCKS + block, &inputs);
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
