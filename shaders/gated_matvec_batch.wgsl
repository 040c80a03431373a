// out[token, row] = act(dot(gate[row], input[token])) * dot(up[row], input[token]) for at most
// TOKENS tokens, each to the last bit as gated_matvec.wgsl has it; tokens take turns as in
// matvec_batch.wgsl.

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
            sums[token][SUMS - 1u] += load_block(token, block, &inputs);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = min(first_row + r, ROWS - 1u);
                sums[token][r] += gate_dot(row * BLOCKS + block, &inputs);
                sums[token][ROWS_PER_GROUP + r] += up_dot(row * BLOCKS + block, &inputs);
            }
        }
    }
    for (var token = 0u; token < tokens; token++) {
        var token_sums = sums[token];
        reduce_lanes(&token_sums, local);
        if (local % LANES == 0u) {
            let scale = input_scale(token_sums[SUMS - 1u]);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = first_row + r;
                if (row < ROWS) {
                    let up = token_sums[ROWS_PER_GROUP + r] * scale;
                    store(token * ROWS + row, row, gated(token, row, token_sums[r] * scale, up));
                }
            }
        }
    }
}
