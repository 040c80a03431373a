// out[token] = x[token], plus given[FIRST + id - ROWS] for an id beyond the embedding table. One lane per vector, one
// row of workgroups per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_ids) var<storage, read> ids: array<u32>; // [tokens]
@group(0) @binding(B_given) var<storage, read> given: array<vec4<u32>>; // [GIVEN_ROWS, COLS / 4], floats as words
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x >= COLS / 4u) {
        return;
    }
    let at = global.y * (COLS / 4u) + global.x;
    let id = ids[global.y];
    var value = x[at];
    if (id >= ROWS) {
        // Padding rows may contain any id.
        let row = min(FIRST + min(id - ROWS, GIVEN_ROWS), GIVEN_ROWS - 1u);
        value += bitcast<vec4<f32>>(given[row * (COLS / 4u) + global.x]);
    }
    out[at] = value;
}
