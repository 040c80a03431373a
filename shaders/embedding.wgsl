// out[token] = SCALE * the row of a (quantized) table for the token id. One lane per block of 32 columns.
@group(0) @binding(B_ids) var<storage, read> ids: array<u32>; // [tokens]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let token = global.x / BLOCKS;
    let block = global.x % BLOCKS;
    if (token >= arrayLength(&ids)) {
        return;
    }
    // Padding rows may contain any id.
    let row = min(ids[token], ROWS - 1u);
    var values: array<vec4<f32>, 8>;
    weights_load(row * BLOCKS + block, &values);
    for (var i = 0u; i < 8u; i++) {
        let column = block * 8u + i;
        if (COLS % 32u == 0u || column < COLS / 4u) {
            out[token * (COLS / 4u) + column] = SCALE * values[i];
        }
    }
}
