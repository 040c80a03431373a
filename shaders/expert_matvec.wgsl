// out[token, row] = the sum over a token's experts of share * dot(weights[row], input), where the input
// belongs to the pair. The lanes of a row share the blocks of all experts, so that there is one
// reduction.
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [tokens, USED]
@group(0) @binding(B_shares) var<storage, read> shares: array<f32>; // [tokens, USED]

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let token = workgroup.y;
    let first_row = (workgroup.x * (WORKGROUP / LANES) + local / LANES) * ROWS_PER_GROUP;
    var sums: array<Sum, ROWS_PER_GROUP>;
    var inputs: Block;
    choose_part(local);
    for (var i = local % LANES / LANES_PER_BLOCK; i < USED * BLOCKS; i += LANES / LANES_PER_BLOCK) {
        let pair = token * USED + i / BLOCKS;
        let block = i % BLOCKS;
        let expert_row = experts[pair] * ROWS;
        let share = shares[pair];
        load_block(pair, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = expert_row + min(first_row + r, ROWS - 1u);
            sums[r] += share * dot_block(row * BLOCKS + block, &inputs);
        }
    }
    var unused = 0.0; // There is no norm.
    reduce_lanes(&sums, &unused, local);
    if (local % LANES == 0u) {
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = first_row + r;
            if (row < ROWS) {
                store_sum(token, row, sums[r] + shared_bias(token, row));
            }
        }
    }
}
