// SiLU, x * sigmoid(x).
fn activate(x: f32) -> f32 {
    return x / (1.0 + exp(-x));
}

fn other_half(up: f32) -> f32 {
    return up;
}
