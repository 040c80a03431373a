// As gated_matmul.wgsl, for devices where barriers cost more than arithmetic: each lane computes 16
// tokens by 4 rows of both matrices on its own.

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Not a constant: steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    let first_row = (workgroup.x * WORKGROUP + local) * 4u;
    let first_token = workgroup.y * TILE_TOKENS;
    var sums: array<vec4<f32>, 32>; // [token, gates | ups]
    var rows: array<array<vec4<f32>, 8>, 8>;
    var values: array<vec4<f32>, 8>;
    for (var block = 0u; block < BLOCKS; block++) {
        for (var r = 0u; r < 4u; r++) { // unrolled
            let at = min(first_row + r, ROWS - 1u) * BLOCKS + block;
            gate_load(at, &values);
            rows[r] = values;
            up_load(at, &values);
            rows[r + 4u] = values;
        }
        add_block(first_token, block, local, &rows, &sums);
    }
    // A copy: what is indexed by variables does not stay in registers.
    var results = sums;
    for (var token = first_token; token < min(first_token + TILE_TOKENS, tokens); token++) {
        for (var row = first_row; row < min(first_row + 4u, ROWS); row++) {
            let at = (token - first_token) * 2u;
            let gate = results[at][row - first_row];
            let up = results[at + 1u][row - first_row];
            store(token * ROWS + row, row, gated(token, row, gate, up));
        }
    }
}
