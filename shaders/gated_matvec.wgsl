// out[row] = act(dot(gate[row], input)) * dot(up[row], input) for one token. Lanes share rows as in
// matvec.wgsl; SUMS = 2 * ROWS_PER_GROUP + 1: gates, ups, the sum of squares.

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
            sums[r] += gate_dot(row * BLOCKS + block, &inputs);
            sums[ROWS_PER_GROUP + r] += up_dot(row * BLOCKS + block, &inputs);
        }
    }
    reduce_lanes(&sums, local);
    if (local % LANES == 0u) {
        let scale = input_scale(sums[SUMS - 1u]);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            if (first_row + r < ROWS) {
                let row = first_row + r;
                let up = sums[ROWS_PER_GROUP + r] * scale;
                store(row, row, gated(0u, row, sums[r] * scale, up));
            }
        }
    }
}
