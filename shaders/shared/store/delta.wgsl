// Adds the adapters' output.
@group(0) @binding(B_delta) var<storage, read> delta: array<f32>; // [tokens, ROWS]

fn add_delta(at: u32, value: f32) -> f32 {
    return value + delta[at];
}
