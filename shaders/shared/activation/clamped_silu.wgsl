// y * sigmoid(1.702 y) of y = min(x, 7). NaN stays NaN.
fn activate(x: f32) -> f32 {
    let y = select(x, 7.0, x > 7.0);
    return y / (1.0 + exp(-1.702 * y));
}

fn other_half(up: f32) -> f32 {
    return select(select(up, 7.0, up > 7.0), -7.0, up < -7.0) + 1.0;
}
