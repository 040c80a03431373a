// Experts without biases.
fn shared_bias(token: u32, row: u32) -> f32 {
    return 0.0;
}
