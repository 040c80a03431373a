// out[pair, row] = act(dot(gate[row], x[token])) * dot(up[row], x[token]) with the matrices of the
// pair's expert, for a tile of 16 pairs of one expert by 32 rows of each matrix per workgroup.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = workgroup.y;
    let expert = tile_expert(tile);
    if (expert == NONE) {
        return;
    }
    let first_row = workgroup.x * 32u;
    // Lines are 32 gate rows, then 32 up rows.
    let line_row = expert * ROWS + min(first_row + local % 32u, ROWS - 1u);
    let my_line = local % 16u;
    let my_pair = local / 16u * 4u;
    let is_used = tile_pair(tile, my_pair) != NONE;
    let inputs = fetched_inputs(tile, local);
    var sums: array<vec4<f32>, 4>; // [pair], two gates and their ups
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        if (local < 32u) {
            gate_load(line_row * BLOCKS + block, &values);
        } else {
            up_load(line_row * BLOCKS + block, &values);
        }
        put_line(&values, local);
        fetch_inputs(inputs, block, local);
        workgroupBarrier();
        if (is_used) {
            add_block(my_pair, my_line + vec4<u32>(0u, 16u, 32u, 48u), &sums);
        }
        workgroupBarrier();
    }
    for (var p = 0u; p < 4u; p++) {
        let pair = tile_pair(tile, my_pair + p);
        for (var r = 0u; r < 2u; r++) {
            let row = first_row + my_line + r * 16u;
            if (pair != NONE && row < ROWS) {
                store(pair * ROWS + row, row, activate(sums[p][r]) * sums[p][r + 2u]);
            }
        }
    }
}
