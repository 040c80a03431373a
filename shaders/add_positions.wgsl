// out[token] = x[token] + the row of a (quantized) table for the token's position. One lane per block of
// 32 columns.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let token = global.x / BLOCKS;
    let block = global.x % BLOCKS;
    if (token >= step_tokens()) {
        return;
    }
    var values: array<vec4<f32>, 8>;
    weights_load(min(row_position(token), ROWS - 1u) * BLOCKS + block, &values);
    for (var i = 0u; i < 8u; i++) {
        let column = block * 8u + i;
        if (COLS % 32u == 0u || column < COLS / 4u) {
            let at = token * (COLS / 4u) + column;
            out[at] = x[at] + values[i];
        }
    }
}
