//! RMS norm (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>) and layer norm (Ba et al. 2016,
//! <https://arxiv.org/abs/1607.06450>) of rows.

use super::f32x8::{F32x8, Kernel, LANES, run};

/// Writes `x / sqrt(mean(x^2) + eps) * weight + residual` to `out`, for rows of `weight.len()` elements. `x`,
/// `residual` and `out` have the same length.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, residual: Option<&[f32]>, out: &mut [f32]) {
    run(Rms {
        x,
        weight,
        eps,
        residual,
        out,
    });
}

/// Writes `(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias` to `out`, for rows of `weight.len()` elements.
pub fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, out: &mut [f32]) {
    run(Layer {
        x,
        weight,
        bias,
        eps,
        out,
    });
}

/// Elements `at..at + 8` of a row, or those that there are and zeros.
#[inline(always)]
pub(super) fn lanes<L: F32x8>(row: &[f32], at: usize) -> L {
    match row[at..].first_chunk::<LANES>() {
        Some(whole) => L::from_array(*whole),
        None => L::load_part(&row[at..]),
    }
}

/// Writes elements `at..at + 8` of a row, or those that there are.
#[inline(always)]
pub(super) fn write<L: F32x8>(row: &mut [f32], at: usize, lanes: L) {
    match row[at..].first_chunk_mut::<LANES>() {
        Some(whole) => *whole = lanes.to_array(),
        None => lanes.store_part(&mut row[at..]),
    }
}

/// `1 / sqrt(mean(head^2) + eps)`.
#[inline(always)]
pub(super) fn rms_scale<L: F32x8>(row: &[f32], eps: f32) -> f32 {
    let mut sum = L::splat(0.0);
    for at in (0..row.len()).step_by(LANES) {
        let x = lanes::<L>(row, at);
        sum = sum.add(x.mul(x));
    }
    let mean = sum.sum() / row.len() as f32;
    (mean + eps).sqrt().recip()
}

/// Writes `row * scale * weight` to `out`.
#[inline(always)]
pub(super) fn scale<L: F32x8>(row: &[f32], scale: f32, weight: &[f32], out: &mut [f32]) {
    let scale = L::splat(scale);
    for at in (0..row.len()).step_by(LANES) {
        let scaled = lanes::<L>(row, at).mul(scale).mul(lanes(weight, at));
        write(out, at, scaled);
    }
}

struct Rms<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    residual: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl Kernel for Rms<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let cols = self.weight.len();
        assert!(self.out.len() == self.x.len() && self.x.len().is_multiple_of(cols));
        let rows = self.x.chunks_exact(cols);
        for (i, (row, out)) in rows.zip(self.out.chunks_exact_mut(cols)).enumerate() {
            scale::<L>(row, rms_scale::<L>(row, self.eps), self.weight, out);
            if let Some(residual) = self.residual {
                let residual = &residual[i * cols..][..cols];
                for at in (0..cols).step_by(LANES) {
                    let sum = lanes::<L>(out, at).add(lanes(residual, at));
                    write(out, at, sum);
                }
            }
        }
    }
}

struct Layer<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    eps: f32,
    out: &'a mut [f32],
}

impl Kernel for Layer<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let cols = self.weight.len();
        assert!(self.out.len() == self.x.len() && self.x.len().is_multiple_of(cols));
        assert_eq!(self.bias.len(), cols);
        let rows = self.x.chunks_exact(cols);
        for (row, out) in rows.zip(self.out.chunks_exact_mut(cols)) {
            let mut sum = L::splat(0.0);
            for at in (0..cols).step_by(LANES) {
                sum = sum.add(lanes(row, at));
            }
            let mean = sum.sum() / cols as f32;
            // The elements that a row lacks in its last lanes stay 0 here.
            for at in (0..cols).step_by(LANES) {
                write(out, at, lanes::<L>(row, at).sub(L::splat(mean)));
            }
            let factor = rms_scale::<L>(out, self.eps);
            for at in (0..cols).step_by(LANES) {
                let scaled = lanes::<L>(out, at).mul(L::splat(factor));
                let scaled = scaled.mul(lanes(self.weight, at));
                write(out, at, scaled.add(lanes(self.bias, at)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{backends, run_on},
        test_values::{assert_close, wave},
    };

    fn exact(row: &[f32], eps: f32, center: bool) -> Vec<f64> {
        let n = row.len() as f64;
        let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
        let mean = if center { mean } else { 0.0 };
        let centered: Vec<f64> = row.iter().map(|v| f64::from(*v) - mean).collect();
        let variance = centered.iter().map(|v| v * v).sum::<f64>() / n;
        let scale = (variance + f64::from(eps)).sqrt().recip();
        centered.iter().map(|v| v * scale).collect()
    }

    #[test]
    fn rows_are_normalized_alike_on_all_lanes() {
        for cols in [1, 4, 7, 8, 20, 64, 172, 577] {
            let (x, weight, bias) = (wave(3 * cols, 1), wave(cols, 2), wave(cols, 3));
            let residual = wave(3 * cols, 4);
            let mut seen = Vec::new();
            for backend in backends() {
                let (mut rms, mut added, mut layer) = (x.clone(), x.clone(), x.clone());
                let (x, weight, bias) = (&x[..], &weight[..], &bias[..]);
                let eps = 1e-5;
                run_on(
                    backend,
                    Rms {
                        x,
                        weight,
                        eps,
                        residual: None,
                        out: &mut rms,
                    },
                );
                let added_residual = &residual[..];
                let residual = Some(added_residual);
                run_on(
                    backend,
                    Rms {
                        x,
                        weight,
                        eps,
                        residual,
                        out: &mut added,
                    },
                );
                run_on(
                    backend,
                    Layer {
                        x,
                        weight,
                        bias,
                        eps,
                        out: &mut layer,
                    },
                );
                for row in 0..3 {
                    let cells = row * cols..(row + 1) * cols;
                    let (plain, centered) = (
                        exact(&x[cells.clone()], eps, false),
                        exact(&x[cells.clone()], eps, true),
                    );
                    for (i, at) in cells.enumerate() {
                        let (w, b, r) = (
                            f64::from(weight[i]),
                            f64::from(bias[i]),
                            f64::from(added_residual[at]),
                        );
                        assert_close(rms[at], plain[i] * w, 1e-6);
                        assert_close(added[at], plain[i] * w + r, 1e-6);
                        // A mean that is off by a rounding matters beside sqrt(eps) where all elements are equal.
                        assert_close(layer[at], centered[i] * w + b, 1e-4);
                    }
                }
                seen.push([rms, added, layer].concat());
            }
            assert!(seen.iter().all(|out| *out == seen[0]));
        }
    }

    #[test]
    fn rows_do_not_depend_on_others() {
        let (x, weight) = (wave(60, 5), wave(20, 6));
        let (mut all, mut one) = (vec![0.0; 60], vec![0.0; 20]);
        rms_norm(&x, &weight, 1e-6, None, &mut all);
        rms_norm(&x[20..40], &weight, 1e-6, None, &mut one);
        assert_eq!(all[20..40], one);
        layer_norm(&x, &weight, &weight, 1e-6, &mut all);
        layer_norm(&x[40..], &weight, &weight, 1e-6, &mut one);
        assert_eq!(all[40..], one);
    }
}
