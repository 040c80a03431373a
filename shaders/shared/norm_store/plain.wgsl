// Writes a normalized vector. `at` indexes out [tokens, COLS / 4].
@group(0) @binding(B_out) var<storage, read_write> out: array<vec4<f32>>;

fn store_vector(at: u32, value: vec4<f32>) {
    out[at] = value;
}
