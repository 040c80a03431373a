// out[token, row] = the sum over a token's experts of share * dot(weights[row], input), the input
// being the pair's. The lanes of a row take turns over the blocks of all of them, so that they share
// one reduction. SUMS = ROWS_PER_GROUP + 1 as in matvec.wgsl; the last is not used.
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [tokens, USED]
@group(0) @binding(B_shares) var<storage, read> shares: array<f32>; // [tokens, USED]

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let token = workgroup.y;
    let first_row = (workgroup.x * (WORKGROUP / LANES) + local / LANES) * ROWS_PER_GROUP;
    var sums: array<f32, SUMS>;
    var inputs: array<vec4<f32>, 8>;
    for (var i = local % LANES; i < USED * BLOCKS; i += LANES) {
        let pair = token * USED + i / BLOCKS;
        let block = i % BLOCKS;
        let expert_row = experts[pair] * ROWS;
        let share = shares[pair];
        load_input(pair, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = expert_row + min(first_row + r, ROWS - 1u);
            sums[r] += share * weights_dot(row * BLOCKS + block, &inputs);
        }
    }
    reduce_lanes(&sums, local);
    if (local % LANES == 0u) {
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = first_row + r;
            if (row < ROWS) {
                store(token * ROWS + row, row, sums[r]);
            }
        }
    }
}
