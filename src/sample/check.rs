//! Checks rows for invalid logits (end of specification 5.4). They are an error and never silently
//! become token 0.

use crate::{Error, Result};

/// Number of separate maxima, so that the compiler can vectorize.
const LANES: usize = 16;

/// The largest logit of a row that holds no NaN.
pub(super) fn largest(logits: &[f32]) -> f32 {
    scan(logits).0
}

/// The largest logit. `-inf` is a valid logit: a forbidden or padded token.
///
/// # Errors
/// [`Error::InvalidLogits`] for NaN, `+inf`, or when nothing is finite.
pub(super) fn finite_max(logits: &[f32], position: usize) -> Result<f32> {
    match scan(logits) {
        (max, true) if max > f32::NEG_INFINITY => Ok(max),
        _ => Err(Error::InvalidLogits { position }),
    }
}

/// The largest logit, and whether all are numbers below `+inf`.
fn scan(logits: &[f32]) -> (f32, bool) {
    let mut invalid = [0u32; LANES];
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut look = |lane: usize, z: f32| {
        let valid = z < f32::INFINITY; // false for NaN too
        invalid[lane] |= u32::from(!valid);
        max[lane] = if z > max[lane] { z } else { max[lane] };
    };
    let mut rows = logits.chunks_exact(LANES);
    for row in &mut rows {
        for (lane, &z) in row.iter().enumerate() {
            look(lane, z);
        }
    }
    for (lane, &z) in rows.remainder().iter().enumerate() {
        look(lane, z);
    }
    let max = max.into_iter().fold(f32::NEG_INFINITY, f32::max);
    (max, invalid == [0; LANES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_masked_rows() {
        assert_eq!(finite_max(&[f32::NEG_INFINITY, -2.0, -3.0], 0), Ok(-2.0));
        for at in 0..40 {
            let mut z = [-9.0; 40];
            z[at] = 4.0;
            assert_eq!(finite_max(&z, 0), Ok(4.0));
        }
    }

    #[test]
    fn rejects_invalid_logits_at_any_position() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for at in 0..40 {
                let mut z = [1.0; 40];
                z[39] = f32::NEG_INFINITY;
                z[at] = bad;
                assert_eq!(finite_max(&z, 7), Err(Error::InvalidLogits { position: 7 }));
            }
        }
        assert!(finite_max(&[f32::NEG_INFINITY; 4], 0).is_err());
        assert!(finite_max(&[], 0).is_err());
    }
}
