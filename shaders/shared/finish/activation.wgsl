// A product with its bias, activated.
fn finish(value: f32) -> f32 {
    return activate(value);
}
