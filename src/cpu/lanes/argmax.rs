//! The largest of a row of logits.

use super::f32x8::{F32x8, Kernel, LANES, run};

/// Logits whose largest one is found before its place.
const BLOCK: usize = 1024;

/// The id of the first largest logit; `None` if a logit is NaN or infinity, or none is finite.
pub fn argmax(logits: &[f32]) -> Option<u32> {
    run(Argmax(logits))
}

struct Argmax<'a>(&'a [f32]);

impl Kernel for Argmax<'_> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<L: F32x8>(self) -> Option<u32> {
        let infinity = L::splat(f32::INFINITY);
        let (mut best, mut first) = (f32::NEG_INFINITY, 0);
        for begin in (0..self.0.len()).step_by(BLOCK) {
            let block = &self.0[begin..self.0.len().min(begin + BLOCK)];
            let (whole, rest) = block.as_chunks::<LANES>();
            let mut peak = L::splat(f32::NEG_INFINITY);
            let mut valid = splat_ones::<L>();
            for lanes in whole {
                let lanes = L::from_array(*lanes);
                valid = valid.and(lanes.less(infinity));
                peak = lanes.max(peak);
            }
            let mut last = [f32::NEG_INFINITY; LANES];
            last[..rest.len()].copy_from_slice(rest);
            let last = L::from_array(last);
            valid = valid.and(last.less(infinity));
            peak = last.max(peak);
            if valid.xor(splat_ones()).any_negative() {
                return None;
            }
            let peak = peak.peak();
            if peak > best {
                (best, first) = (peak, begin);
            }
        }
        let block = &self.0[first..];
        let at = block.iter().position(|logit| *logit == best);
        at.filter(|_| best.is_finite())
            .map(|at| (first + at) as u32)
    }
}

#[inline(always)]
fn splat_ones<L: F32x8>() -> L {
    super::f32x8::splat_bits(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{backends, run_on},
        test_values::wave,
    };

    fn each(logits: &[f32]) -> Option<u32> {
        let ids: Vec<_> = backends()
            .into_iter()
            .map(|backend| run_on(backend, Argmax(logits)))
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
        ids[0]
    }

    fn simple(logits: &[f32]) -> Option<u32> {
        let mut best: Option<(u32, f32)> = None;
        for (id, &value) in logits.iter().enumerate() {
            if value.is_nan() || value == f32::INFINITY {
                return None;
            }
            if value.is_finite() && best.is_none_or(|(_, peak)| value > peak) {
                best = Some((id as u32, value));
            }
        }
        best.map(|(id, _)| id)
    }

    #[test]
    fn the_first_largest_logit_is_found() {
        for len in [1, 3, 8, 9, 1023, 1024, 1025, 4099] {
            for seed in 0..20 {
                // Few distinct values, so that many are equal.
                let logits: Vec<f32> = wave(len, seed).iter().map(|v| (v * 4.0).round()).collect();
                assert_eq!(each(&logits), simple(&logits));
            }
        }
        assert_eq!(each(&[-0.0, 0.0]), Some(0));
        assert_eq!(each(&[0.0, -0.0]), Some(0));
        assert_eq!(each(&[f32::MIN]), Some(0));
    }

    #[test]
    fn invalid_rows_have_no_largest_logit() {
        assert_eq!(each(&[]), None);
        assert_eq!(each(&[f32::NEG_INFINITY; 9]), None);
        for at in [0, 7, 8, 1030, 1033] {
            for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut logits = wave(1034, 1);
                logits[at] = bad;
                assert_eq!(each(&logits), simple(&logits), "{bad} at {at}");
                assert_eq!(each(&logits).is_none(), bad != f32::NEG_INFINITY);
            }
        }
    }
}
