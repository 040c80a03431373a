//! Bad numerics (end of API.md section 5.4): an error, never a silent token 0.

use crate::{Error, Result};

/// The largest logit. `-inf` is a legal logit: a forbidden or padded row.
///
/// # Errors
/// [`Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite.
pub(super) fn finite_max(logits: &[f32], position: usize) -> Result<f32> {
    let mut valid = true;
    let mut max = f32::NEG_INFINITY;
    for &z in logits {
        valid &= z < f32::INFINITY; // false for NaN too
        max = if z > max { z } else { max };
    }
    if valid && max > f32::NEG_INFINITY {
        Ok(max)
    } else {
        Err(Error::InvalidLogits { position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_masked_rows() {
        assert_eq!(finite_max(&[f32::NEG_INFINITY, -2.0, -3.0], 0), Ok(-2.0));
    }

    #[test]
    fn refuses_bad_numerics_wherever_they_stand() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for at in 0..3 {
                let mut z = [1.0, 2.0, f32::NEG_INFINITY];
                z[at] = bad;
                assert_eq!(finite_max(&z, 7), Err(Error::InvalidLogits { position: 7 }));
            }
        }
        assert!(finite_max(&[f32::NEG_INFINITY; 4], 0).is_err());
        assert!(finite_max(&[], 0).is_err());
    }
}
