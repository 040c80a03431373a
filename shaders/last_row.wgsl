// out = the row of the step's last token.
@group(0) @binding(B_x) var<storage, read> x: array<vec4<f32>>; // [tokens, COLS / 4]
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>; // [COLS / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global: vec3<u32>) {
    if (global.x < COLS / 4u) {
        out[global.x] = x[(step_tokens() - 1u) * (COLS / 4u) + global.x];
    }
}
