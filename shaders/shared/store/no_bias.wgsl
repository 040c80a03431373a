// Leaves a result without a bias.
fn add_bias(row: u32, value: f32) -> f32 {
    return value;
}
