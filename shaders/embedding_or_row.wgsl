// Like embedding.wgsl, but an id beyond the table is the index of a given row: out[token] = given[id - ROWS].
@group(0) @binding(B_ids) var<storage, read> ids: array<u32>; // [tokens]
@group(0) @binding(B_given) var<storage, read> given: array<vec4<u32>>; // [GIVEN_ROWS, COLS / 4], floats as words
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    let token = global.x / BLOCKS;
    let block = global.x % BLOCKS;
    if (token >= arrayLength(&ids)) {
        return;
    }
    let id = ids[token];
    // Padding rows may contain any id.
    let row = min(id, ROWS - 1u);
    let given_row = min(max(id, ROWS) - ROWS, GIVEN_ROWS - 1u);
    var values: array<vec4<f32>, 8>;
    weights_load(row * BLOCKS + block, &values);
    for (var i = 0u; i < 8u; i++) {
        let column = block * 8u + i;
        if (COLS % 32u == 0u || column < COLS / 4u) {
            var value = SCALE * values[i];
            if (id >= ROWS) {
                value = bitcast<vec4<f32>>(given[given_row * (COLS / 4u) + column]);
            }
            out[token * (COLS / 4u) + column] = value;
        }
    }
}
