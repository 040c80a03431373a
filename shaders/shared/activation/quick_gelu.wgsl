// The approximation of GELU by a sigmoid, x * sigmoid(1.702 x).
fn activate(x: f32) -> f32 {
    return x / (1.0 + exp(-1.702 * x));
}

fn other_half(up: f32) -> f32 {
    return up;
}
