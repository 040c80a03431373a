// Score of a query and a key, bent to stay within SOFT_CAP of zero; as it is if that is 0.
fn soft_capped(score: f32) -> f32 {
    if (SOFT_CAP == 0.0) {
        return score;
    }
    // Beyond 10 tanh is 1, and large arguments become NaN on some GPUs.
    return SOFT_CAP * tanh(clamp(score / SOFT_CAP, -10.0, 10.0));
}
