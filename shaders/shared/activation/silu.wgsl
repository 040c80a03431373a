// SiLU, x * sigmoid(x).
fn activate(x: f32) -> f32 {
    return x / (1.0 + exp(-x));
}
