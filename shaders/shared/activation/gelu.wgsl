// The tanh approximation of GELU, written with a sigmoid: (1 + tanh(y)) / 2 = sigmoid(2 y).
fn activate(x: f32) -> f32 {
    let y = 1.5957691 * (x + 0.044715 * x * x * x); // 2 * sqrt(2 / pi)
    return x / (1.0 + exp(-y));
}

fn other_half(up: f32) -> f32 {
    return up;
}
