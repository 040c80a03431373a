// Adds a row's bias.
@group(0) @binding(B_bias) var<storage, read> bias: array<f32>; // [ROWS]

fn add_bias(row: u32, value: f32) -> f32 {
    return value + bias[row];
}
