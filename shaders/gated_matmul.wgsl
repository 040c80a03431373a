// out[token, row] = act(dot(gate[row], x[token])) * dot(up[row], x[token]), a tile of both per
// workgroup: its first half of rows are the gate's, the other the same rows of up.

const HALF: u32 = TILE_ROWS / 2u;

fn load_row(first_row: u32, line: u32, block: u32, out: ptr<function, Block>) {
    let at = min(first_row + line % HALF, ROWS - 1u) * BLOCKS + block;
    if (line < HALF) {
        gate_load(at, out);
    } else {
        up_load(at, out);
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let first_row = workgroup.x * HALF;
    let first_token = workgroup.y * TILE_TOKENS;
    var sums: array<vec4<f32>, LANE_TOKENS>;
    multiply_tiles(first_row, first_token, local, &sums);
    // Not a constant: steps of all chunk sizes share one pipeline.
    let tokens = arrayLength(&out) / ROWS;
    for (var t = 0u; t < LANE_TOKENS; t++) { // unrolled
        let token = first_token + t * TOKEN_LANES + local / ROW_LANES;
        for (var r = 0u; r < 2u; r++) { // unrolled
            let row = first_row + r * ROW_LANES + local % ROW_LANES;
            if (token < tokens && row < ROWS) {
                store(token * ROWS + row, row, gated(token, row, sums[t][r], sums[t][r + 2u]));
            }
        }
    }
}
