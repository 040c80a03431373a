//! `exp` in plain f32 arithmetic: the same bits on every platform, and the compiler vectorizes it.

/// Arguments below this one give 0: their exponential would be subnormal in f32, which GPUs may flush to
/// zero.
pub(super) const MIN_ARGUMENT: f32 = -87.0;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
// ln 2 in two parts (Cody and Waite): the first has few enough bits that n * LN2_HIGH is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// 1.5 * 2^23: adding it rounds to the nearest integer and leaves that integer in the low bits.
const ROUND: f32 = 12_582_912.0;

/// `e^x` for `x <= 0`, within 2 ulp; 0 below [`MIN_ARGUMENT`].
///
/// `x = n ln 2 + r`, then the polynomial of Cephes' `expf` (S. Moshier) for `e^r`, then `2^n`
/// through the exponent bits.
#[inline]
pub(super) fn exp(x: f32) -> f32 {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_2e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 0.166_666_65;
    p = p * r + 0.5;
    let e_r = p * r * r + r + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits());
    let power = f32::from_bits(exponent.wrapping_add(127) << 23);
    if x >= MIN_ARGUMENT { e_r * power } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_exact_value() {
        let mut worst = 0.0f64;
        for step in 0..=870_000 {
            let x = -(step as f32) * 1e-4;
            let exact = f64::from(x).exp();
            worst = worst.max(((f64::from(exp(x)) - exact) / exact).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst}");
    }

    #[test]
    fn ends_and_order() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert!(exp(MIN_ARGUMENT) >= f32::MIN_POSITIVE);
        assert_eq!(exp(-87.001), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }
}
