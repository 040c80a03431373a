//! The logarithm of the sum of exponentials of a row of logits.

use super::f32x8::{F32x8, Kernel, LANES, run};
use super::functions::exp;

/// Exponentials that are added in f32 before their sum is added in f64.
const BLOCK: usize = 1024;

/// `log(sum(exp(logits)))`, by which a logit is more than its log-probability; `None` if a logit is NaN or infinity, or none
/// is finite.
pub fn log_sum_exp(logits: &[f32]) -> Option<f32> {
    run(LogSumExp(logits))
}

struct LogSumExp<'a>(&'a [f32]);

impl Kernel for LogSumExp<'_> {
    type Output = Option<f32>;

    #[inline(always)]
    fn run<L: F32x8>(self) -> Option<f32> {
        let (whole, rest) = self.0.as_chunks::<LANES>();
        let mut last = [f32::NEG_INFINITY; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let last = L::from_array(last);
        // A NaN is passed over here. It makes the sum NaN.
        let mut peak = last.max(L::splat(f32::NEG_INFINITY));
        for lanes in whole {
            peak = L::from_array(*lanes).max(peak);
        }
        let peak = peak.peak();
        if !peak.is_finite() {
            return None;
        }
        let peaks = L::splat(peak);
        let mut total = f64::from(exp(last.sub(peaks)).sum());
        for block in whole.chunks(BLOCK / LANES) {
            let mut sums = L::splat(0.0);
            for lanes in block {
                sums = sums.add(exp(L::from_array(*lanes).sub(peaks)));
            }
            total += f64::from(sums.sum());
        }
        let normalizer = peak + total.ln() as f32;
        (!normalizer.is_nan()).then_some(normalizer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{backends, run_on},
        test_values::{assert_close, wave},
    };

    fn each(logits: &[f32]) -> Option<f32> {
        let found: Vec<_> = backends()
            .into_iter()
            .map(|backend| run_on(backend, LogSumExp(logits)))
            .collect();
        let bits = |it: &Option<f32>| it.map(f32::to_bits);
        assert!(found.iter().all(|it| bits(it) == bits(&found[0])));
        found[0]
    }

    #[test]
    fn sums_are_exact() {
        for len in [1, 7, 8, 9, 1023, 1025, 4099, 150_001] {
            for offset in [-300.0, 0.0, 80.0, 3e38] {
                let logits: Vec<f32> = wave(len, 1).iter().map(|v| v * 4.0 + offset).collect();
                let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let exact: f64 = logits.iter().map(|v| f64::from(v - peak).exp()).sum();
                let exact = f64::from(peak) + exact.ln();
                assert_close(each(&logits).unwrap(), exact, 3e-7);
            }
        }
        assert_eq!(each(&[f32::NEG_INFINITY, 2.5]), Some(2.5));
    }

    #[test]
    fn invalid_rows_have_no_sum() {
        assert_eq!(each(&[]), None);
        assert_eq!(each(&[f32::NEG_INFINITY; 9]), None);
        for at in [0, 7, 8, 1030, 1033] {
            for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
                let mut logits = wave(1034, 1);
                logits[at] = bad;
                assert_eq!(each(&logits), None, "{bad} at {at}");
            }
        }
    }
}
