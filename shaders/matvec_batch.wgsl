// matvec.wgsl for at most TOKENS tokens, with bit-identical results. A block is multiplied with one token
// after the other. Its weights come from the cache for all tokens but the first. No token's sum depends on
// the number of tokens.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let group = (workgroup.y * workgroups.x + workgroup.x) * (WORKGROUP / LANES) + local / LANES;
    let first_row = group * ROWS_PER_GROUP;
    let tokens = input_tokens();
    var sums: array<array<Sum, ROWS_PER_GROUP>, TOKENS>;
    var sums_of_squares: array<f32, TOKENS>;
    var inputs: Block;
    choose_part(local);
    for (var block = local % LANES / LANES_PER_BLOCK; block < BLOCKS; block += LANES / LANES_PER_BLOCK) {
        for (var token = 0u; token < tokens; token++) {
            sums_of_squares[token] += load_block(token, block, &inputs);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = min(first_row + r, ROWS - 1u);
                sums[token][r] += dot_block(row * BLOCKS + block, &inputs);
            }
        }
    }
    for (var token = 0u; token < tokens; token++) {
        var token_sums = sums[token];
        var sum_of_squares = sums_of_squares[token];
        reduce_lanes(&token_sums, &sum_of_squares, local);
        if (local % LANES == 0u) {
            let scale = input_scale(sum_of_squares);
            for (var r = 0u; r < ROWS_PER_GROUP; r++) {
                let row = first_row + r;
                if (row < ROWS) {
                    store_sum(token, row, token_sums[r] * scale);
                }
            }
        }
    }
}
