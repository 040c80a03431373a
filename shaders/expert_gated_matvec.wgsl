// matvec.wgsl for a gated layer, with the matrices of each pair's expert and the input of its token:
// out[pair, row].
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [tokens, USED]

var<private> own_expert: u32; // whose products store_sum gets

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let pair = workgroup.y;
    own_expert = experts[pair];
    let expert_row = own_expert * ROWS;
    let first_row = (workgroup.x * (WORKGROUP / LANES) + local / LANES) * ROWS_PER_GROUP;
    var sums: array<Sum, ROWS_PER_GROUP>;
    var sum_of_squares = 0.0;
    var inputs: Block;
    choose_part(local);
    for (var block = local % LANES / LANES_PER_BLOCK; block < BLOCKS; block += LANES / LANES_PER_BLOCK) {
        sum_of_squares += load_block(pair / USED, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = expert_row + min(first_row + r, ROWS - 1u);
            sums[r] += dot_block(row * BLOCKS + block, &inputs);
        }
    }
    reduce_lanes(&sums, &sum_of_squares, local);
    if (local % LANES == 0u) {
        let scale = input_scale(sum_of_squares);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = first_row + r;
            if (row < ROWS) {
                store_sum(pair, row, sums[r] * scale);
            }
        }
    }
}
