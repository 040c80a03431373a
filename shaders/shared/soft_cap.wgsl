// Limits a value smoothly to +-SOFT_CAP; 0 means no limit.
fn soft_capped(score: f32) -> f32 {
    if (SOFT_CAP == 0.0) {
        return score;
    }
    // tanh is 1 beyond 10, and large arguments give NaN on some GPUs.
    return SOFT_CAP * tanh(clamp(score / SOFT_CAP, -10.0, 10.0));
}
