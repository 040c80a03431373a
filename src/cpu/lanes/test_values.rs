//! Values for tests, and how near results must be.

/// `len` values between -2 and 2 that look random and depend on `seed`.
pub(crate) fn wave(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        values.push((state >> 40) as f32 / (1u32 << 22) as f32 - 2.0);
    }
    values
}

/// Asserts that `value` is within `tolerance` of `exact`, relative to it or to 1.
#[track_caller]
pub(crate) fn assert_close(value: f32, exact: f64, tolerance: f64) {
    let error = (f64::from(value) - exact).abs();
    assert!(
        error <= tolerance * exact.abs().max(1.0),
        "{value} for {exact}"
    );
}

/// The bits, which tell zeros apart.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
