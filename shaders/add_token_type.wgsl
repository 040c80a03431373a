// out[token] = x[token] + table[types[token]]. One lane per vector, one row of workgroups per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_types) var<storage, read> types: array<u32>; // [tokens]
@group(0) @binding(B_table) var<storage, read> table: array<vec4<f32>>; // [types, COLS / 4]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x < COLS / 4u) {
        let at = global.y * (COLS / 4u) + global.x;
        out[at] = x[at] + table[types[global.y] * (COLS / 4u) + global.x];
    }
}
