// A product with its bias, scaled and bent to stay within SOFT_CAP of zero.
fn finish(value: f32) -> f32 {
    return soft_capped(value * OUT_SCALE);
}
