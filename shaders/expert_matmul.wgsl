// matmul.wgsl with the matrices of each pair's expert: out[pair, row]. A workgroup computes a tile of 16
// pairs of one expert by 64 lines of weights. The lines are 64 rows of one matrix or 32 rows of each of two.
// LANE_ROWS = 4 / MATRICES.

const MATRIX_ROWS: u32 = 64u / MATRICES;

var<private> own_expert: u32; // whose products store_sum gets

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
    own_expert = expert;
    let first_row = workgroup.x * MATRIX_ROWS;
    let line_row = expert * ROWS + min(first_row + local % MATRIX_ROWS, ROWS - 1u);
    let my_line = local % 16u;
    let my_pair = local / 16u * 4u;
    let is_used = tile_pair(tile, my_pair) != NONE;
    let inputs = fetched_inputs(tile, local);
    var sums: array<vec4<f32>, 4>; // [pair], four lines each
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        load_line(local, 64u, line_row * BLOCKS + block, &values);
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
        for (var r = 0u; r < LANE_ROWS; r++) {
            let row = first_row + my_line + r * 16u;
            if (pair != NONE && row < ROWS) {
                store_sum(pair, row, sum_of_four(sums[p], r));
            }
        }
    }
}
