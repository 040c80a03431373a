// Writes a result plus its row's bias. `at` indexes out [tokens, ROWS].
@group(0) @binding(B_out) var<storage, read_write> out: array<f32>;
@group(0) @binding(B_bias) var<storage, read> bias: array<f32>; // [ROWS]

fn store(at: u32, row: u32, value: f32) {
    out[at] = finish(value + bias[row]);
}
