// out[row] = dot(weights[row], input) for one token. LANES lanes share ROWS_PER_GROUP rows; lane l
// takes blocks l, l + LANES, ... of each. SUMS = ROWS_PER_GROUP + 1: the last is the sum of squares.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = (workgroup.y * workgroups.x + workgroup.x) * (WORKGROUP / LANES) + local / LANES;
    let first_row = group * ROWS_PER_GROUP;
    var sums: array<f32, SUMS>;
    var inputs: Block;
    for (var block = local % LANES; block < BLOCKS; block += LANES) {
        sums[SUMS - 1u] += load_block(0u, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = min(first_row + r, ROWS - 1u);
            sums[r] += weights_dot(row * BLOCKS + block, &inputs);
        }
    }
    reduce_lanes(&sums, local);
    if (local % LANES == 0u) {
        let scale = input_scale(sums[SUMS - 1u]);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            if (first_row + r < ROWS) {
                store(first_row + r, first_row + r, sums[r] * scale);
            }
        }
    }
}
