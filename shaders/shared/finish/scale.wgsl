// Scales a product.
fn finish(value: f32) -> f32 {
    return value * OUT_SCALE;
}
