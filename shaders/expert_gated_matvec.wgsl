// out[pair, row] = act(dot(gate[row], input)) * dot(up[row], input) with the matrices of the pair's
// expert and the input of its token. Lanes share rows as in matvec.wgsl; SUMS = 2 * ROWS_PER_GROUP + 1:
// gates, ups, the sum of squares.
@group(0) @binding(B_experts) var<storage, read> experts: array<u32>; // [tokens, USED]

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let pair = workgroup.y;
    let expert_row = experts[pair] * ROWS;
    let first_row = (workgroup.x * (WORKGROUP / LANES) + local / LANES) * ROWS_PER_GROUP;
    var sums: array<f32, SUMS>;
    var inputs: array<vec4<f32>, 8>;
    for (var block = local % LANES; block < BLOCKS; block += LANES) {
        sums[SUMS - 1u] += load_input(pair / USED, block, &inputs);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = expert_row + min(first_row + r, ROWS - 1u);
            sums[r] += gate_dot(row * BLOCKS + block, &inputs);
            sums[ROWS_PER_GROUP + r] += up_dot(row * BLOCKS + block, &inputs);
        }
    }
    reduce_lanes(&sums, local);
    if (local % LANES == 0u) {
        let scale = input_scale(sums[SUMS - 1u]);
        for (var r = 0u; r < ROWS_PER_GROUP; r++) {
            let row = first_row + r;
            if (row < ROWS) {
                let up = sums[ROWS_PER_GROUP + r] * scale;
                store(pair * ROWS + row, row, activate(sums[r] * scale) * up);
            }
        }
    }
}
