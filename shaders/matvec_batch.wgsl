// out[token, row] = dot(weights[row], input[token]) for at most TOKENS tokens, each to the last bit
// as matvec.wgsl has it. A block meets one token after the other, so that its weights come from the
// cache for all but the first, and no token's sum depends on how many there are.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = (workgroup.y * workgroups.x + workgroup.x) * (WORKGROUP / LANES) + local / LANES;
    let first_row = group * ROWS_PER_GROUP;
    let tokens = input_tokens();
    var sums: array<array<f32, SUMS>, TOKENS>;
    var inputs: Block;
    for (var block = local % LANES; block < BLOCKS; block += LANES) {
        for (var token = 0u; token < tokens; token++) {
            sums[token][ROWS_PER_GROUP] += load_block(token, block, &inputs);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = min(first_row + r, ROWS - 1u);
                sums[token][r] += weights_dot(row * BLOCKS + block, &inputs);
            }
        }
    }
    for (var token = 0u; token < tokens; token++) {
        var token_sums = sums[token];
        reduce_lanes(&token_sums, local);
        if (local % LANES == 0u) {
            let scale = input_scale(token_sums[ROWS_PER_GROUP]);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = first_row + r;
                if (row < ROWS) {
                    store(token * ROWS + row, row, token_sums[r] * scale);
                }
            }
        }
    }
}
