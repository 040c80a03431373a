// There is no adapter.
fn add_delta(at: u32, value: f32) -> f32 {
    return value;
}
