// A product with its bias, scaled.
fn finish(value: f32) -> f32 {
    return value * OUT_SCALE;
}
