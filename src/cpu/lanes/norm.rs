//! Norms of rows: what the kinds are, the numbers of the twin, and the kernels of the CPU device. `ops/norm.rs` has the op.

use super::f32x8::{F32x8, Kernel, LANES, run};

/// A kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// RMS norm, `x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>).
    Rms,
    /// Layer norm, `(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias` (Ba et al. 2016,
    /// <https://arxiv.org/abs/1607.06450>).
    Layer,
}

/// The properties of a kind.
struct Properties {
    name: &'static str,
    wgsl: &'static str,
    has_bias: bool,
    is_fused: bool,
    adds_residual: bool,
}

impl NormKind {
    /// All kinds, for tests.
    pub const ALL: [NormKind; 2] = [NormKind::Rms, NormKind::Layer];

    // Not inlined: kernels are identified by the addresses of their modules.
    #[inline(never)]
    fn properties(self) -> Properties {
        match self {
            NormKind::Rms => Properties {
                name: "rms_norm",
                wgsl: wgsl!("rms_norm"),
                has_bias: false,
                is_fused: true,
                adds_residual: true,
            },
            NormKind::Layer => Properties {
                name: "layer_norm",
                wgsl: wgsl!("layer_norm"),
                has_bias: true,
                is_fused: false,
                adds_residual: false,
            },
        }
    }

    /// The name in the names of kernels.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The kernel for GPUs.
    pub fn wgsl(self) -> &'static str {
        self.properties().wgsl
    }

    /// Whether it adds a bias.
    pub fn has_bias(self) -> bool {
        self.properties().has_bias
    }

    /// Whether products for few tokens compute it while they read their input.
    pub fn is_fused(self) -> bool {
        self.properties().is_fused
    }

    /// Whether its kernels add a residual to the result.
    pub fn adds_residual(self) -> bool {
        self.properties().adds_residual
    }

    /// The twin's numbers of a row: the center is subtracted from it, and the result is multiplied by the scale.
    pub fn center_and_scale(self, row: &[f32], eps: f32) -> (f32, f32) {
        let mean = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / row.len() as f32;
        match self {
            NormKind::Rms => {
                let square = mean(&mut row.iter().map(|v| v * v));
                (0.0, (square + eps).sqrt().recip())
            }
            NormKind::Layer => {
                let center = mean(&mut row.iter().copied());
                let variance = mean(&mut row.iter().map(|v| (v - center) * (v - center)));
                (center, (variance + eps).sqrt().recip())
            }
        }
    }
}

/// The rows that a norm is computed of, and its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// `[rows, cols]`
    pub x: &'a [f32],
    /// `[cols]`
    pub weight: &'a [f32],
    /// `[cols]`, or empty if the kind [has none](NormKind::has_bias).
    pub bias: &'a [f32],
    /// The number that is added to the mean square or the variance.
    pub eps: f32,
    /// `[rows, cols]`, added to the result if the kind [does so](NormKind::adds_residual).
    pub residual: Option<&'a [f32]>,
}

/// Writes the norm of each row to `out`, `[rows, cols]`.
///
/// # Panics
/// If a length does not fit, or if the kind has no bias or adds no residual where one is given.
pub fn norm(kind: NormKind, rows: Rows, out: &mut [f32]) {
    assert!(kind.adds_residual() || rows.residual.is_none());
    assert_eq!(
        rows.bias.len(),
        if kind.has_bias() {
            rows.weight.len()
        } else {
            0
        }
    );
    match kind {
        NormKind::Rms => run(Rms { rows, out }),
        NormKind::Layer => run(Layer { rows, out }),
    }
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
    rows: Rows<'a>,
    out: &'a mut [f32],
}

impl Kernel for Rms<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let Rows {
            x,
            weight,
            eps,
            residual,
            ..
        } = self.rows;
        let cols = weight.len();
        assert!(self.out.len() == x.len() && x.len().is_multiple_of(cols));
        let rows = x.chunks_exact(cols).zip(self.out.chunks_exact_mut(cols));
        for (i, (row, out)) in rows.enumerate() {
            scale::<L>(row, rms_scale::<L>(row, eps), weight, out);
            if let Some(residual) = residual {
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
    rows: Rows<'a>,
    out: &'a mut [f32],
}

impl Kernel for Layer<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let Rows {
            x,
            weight,
            bias,
            eps,
            ..
        } = self.rows;
        let cols = weight.len();
        assert!(self.out.len() == x.len() && x.len().is_multiple_of(cols));
        assert_eq!(bias.len(), cols);
        for (row, out) in x.chunks_exact(cols).zip(self.out.chunks_exact_mut(cols)) {
            let mut sum = L::splat(0.0);
            for at in (0..cols).step_by(LANES) {
                sum = sum.add(lanes(row, at));
            }
            let mean = sum.sum() / cols as f32;
            // The elements that a row lacks in its last lanes stay 0 here.
            for at in (0..cols).step_by(LANES) {
                write(out, at, lanes::<L>(row, at).sub(L::splat(mean)));
            }
            let factor = rms_scale::<L>(out, eps);
            for at in (0..cols).step_by(LANES) {
                let scaled = lanes::<L>(out, at).mul(L::splat(factor));
                let scaled = scaled.mul(lanes(weight, at));
                write(out, at, scaled.add(lanes(bias, at)));
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
            let (residual, eps) = (wave(3 * cols, 4), 1e-5);
            let mut seen = Vec::new();
            for backend in backends() {
                let (mut rms, mut added, mut layer) = (x.clone(), x.clone(), x.clone());
                let plain = Rows {
                    x: &x,
                    weight: &weight,
                    bias: &[],
                    eps,
                    residual: None,
                };
                let onto = Rows {
                    residual: Some(&residual),
                    ..plain
                };
                let biased = Rows {
                    bias: &bias,
                    ..plain
                };
                let (rows, out) = (plain, &mut rms[..]);
                run_on(backend, Rms { rows, out });
                let (rows, out) = (onto, &mut added[..]);
                run_on(backend, Rms { rows, out });
                let (rows, out) = (biased, &mut layer[..]);
                run_on(backend, Layer { rows, out });
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
                            f64::from(residual[at]),
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
        for kind in NormKind::ALL {
            let compute = |x: &[f32]| {
                let mut out = vec![0.0; x.len()];
                let rows = Rows {
                    x,
                    weight: &weight,
                    bias: if kind.has_bias() { &weight } else { &[] },
                    eps: 1e-6,
                    residual: None,
                };
                norm(kind, rows, &mut out);
                out
            };
            assert_eq!(compute(&x)[20..40], compute(&x[20..40]), "{kind:?}");
        }
    }

    /// The kernels of the CPU device and the twin's numbers are of the same norm.
    #[test]
    fn kernels_agree_with_the_numbers_of_the_twin() {
        let (x, weight, bias) = (wave(3 * 172, 1), wave(172, 2), wave(172, 3));
        for kind in NormKind::ALL {
            let bias = if kind.has_bias() { &bias[..] } else { &[] };
            let rows = Rows {
                x: &x,
                weight: &weight,
                bias,
                eps: 1e-5,
                residual: None,
            };
            let mut out = vec![0.0; x.len()];
            norm(kind, rows, &mut out);
            for (row, out) in x.chunks(172).zip(out.chunks(172)) {
                let (center, scale) = kind.center_and_scale(row, 1e-5);
                for i in 0..172 {
                    let added = bias.get(i).copied().unwrap_or(0.0);
                    let twin = (row[i] - center) * scale * weight[i] + added;
                    assert_close(out[i], f64::from(twin), 1e-5);
                }
            }
        }
    }
}
