// Writes a normalized vector plus the residual stream, times a number. `at` indexes out and residual
// [tokens, COLS / 4].
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(B_residual) var<storage, read> residual: array<vec4<f32>>;
@group(0) @binding(B_scale) var<storage, read> scale: array<f32>; // [1]

fn store_vector(at: u32, value: vec4<f32>) {
    out[at] = (value + residual[at]) * scale[0];
}
