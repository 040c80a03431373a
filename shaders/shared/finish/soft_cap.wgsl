// Scales a product and limits it smoothly to +-SOFT_CAP.
fn finish(value: f32) -> f32 {
    return soft_capped(value * OUT_SCALE);
}
