// Adds the residual stream.
@group(0) @binding(B_residual) var<storage, read> residual: array<f32>; // [tokens, ROWS]

fn add_residual(at: u32, value: f32) -> f32 {
    return value + residual[at];
}
