// out[token, i] = x[token, i] * wide[token, first + i]. One lane per vector, one row of workgroups per token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_wide) var<storage, read> wide: array<vec4<f32>>; // [tokens, WIDE_COLS / 4]
@group(0) @binding(B_first) var<storage, read> first: array<u32>; // [1], a multiple of 4
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [tokens, COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x < COLS / 4u) {
        let at = global.y * (COLS / 4u) + global.x;
        out[at] = x[at] * wide[global.y * (WIDE_COLS / 4u) + first[0] / 4u + global.x];
    }
}
