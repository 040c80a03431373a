//! Functions between the two halves of a feed-forward layer: all that is known of an activation, for the CPU device, for
//! GPUs, for the twin and for `config.json`.

use super::{
    f32x8::{F32x8, Kernel, LANES, run},
    functions::{exp, tanh},
};

/// The WGSL of an activation, from the bodies of its two functions.
macro_rules! module {
    ($activate:literal, $other_half:literal) => {
        concat!(
            "fn activate(x: f32) -> f32 {\n    ",
            $activate,
            "\n}\n\nfn other_half(up: f32) -> f32 {\n    ",
            $other_half,
            "\n}\n"
        )
    };
}

/// An activation function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x * sigmoid(x)` (Elfwing et al. 2017, <https://arxiv.org/abs/1702.03118>).
    Silu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))` (Hendrycks and Gimpel 2016,
    /// <https://arxiv.org/abs/1606.08415>).
    Gelu,
    /// `x * sigmoid(1.702 x)`, an approximation of GELU, too.
    QuickGelu,
    /// `y * sigmoid(1.702 y)` of `y = min(x, 7)`; the other half of a gated layer is limited to +-7 and one is added to it
    /// (OpenAI 2025, <https://arxiv.org/abs/2508.10925>).
    ClampedSilu,
    /// `max(x, 0)^2` (So et al. 2021, <https://arxiv.org/abs/2109.08668>).
    SquaredRelu,
}

/// The limit of [`Activation::ClampedSilu`].
const LIMIT: f32 = 7.0;

impl Activation {
    /// All activations, for tests.
    pub const ALL: [Activation; 5] = [
        Activation::Silu,
        Activation::Gelu,
        Activation::QuickGelu,
        Activation::ClampedSilu,
        Activation::SquaredRelu,
    ];

    /// Its names in the `config.json` of Hugging Face folders.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            // Files of gpt-oss say so, too.
            Activation::Silu | Activation::ClampedSilu => &["silu"],
            Activation::Gelu => &["gelu_pytorch_tanh", "gelu_new"],
            Activation::QuickGelu => &["quick_gelu"],
            Activation::SquaredRelu => &["relu2"],
        }
    }

    /// The function of one value, with the functions of the standard library: the twin of the kernels.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Gelu => {
                let y = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + y.tanh())
            }
            Activation::QuickGelu => x / (1.0 + (-1.702 * x).exp()),
            Activation::ClampedSilu => {
                let y = if x > LIMIT { LIMIT } else { x };
                y / (1.0 + (-1.702 * y).exp())
            }
            Activation::SquaredRelu if x < 0.0 => 0.0,
            Activation::SquaredRelu => x * x,
        }
    }

    /// The factor of the activated gate: the twin of the kernels.
    pub fn other_half(self, up: f32) -> f32 {
        match self {
            Activation::ClampedSilu if up > LIMIT => LIMIT + 1.0,
            Activation::ClampedSilu if up < -LIMIT => 1.0 - LIMIT,
            Activation::ClampedSilu => up + 1.0,
            _ => up,
        }
    }

    /// The module of the functions for GPUs: [`apply`](Self::apply) as `activate`, and `other_half`. Not inlined: kernels
    /// are identified by the addresses of their modules.
    #[inline(never)]
    pub fn wgsl(self) -> &'static str {
        match self {
            Activation::Silu => module!("return x / (1.0 + exp(-x));", "return up;"),
            // Written with a sigmoid: (1 + tanh(y)) / 2 = sigmoid(2 y), so the factor is 2 * sqrt(2 / pi).
            Activation::Gelu => module!(
                "let y = 1.5957691 * (x + 0.044715 * x * x * x); return x / (1.0 + exp(-y));",
                "return up;"
            ),
            Activation::QuickGelu => module!("return x / (1.0 + exp(-1.702 * x));", "return up;"),
            // NaN stays NaN.
            Activation::ClampedSilu => module!(
                "let y = select(x, 7.0, x > 7.0); return y / (1.0 + exp(-1.702 * y));",
                "return select(select(up, 7.0, up > 7.0), -7.0, up < -7.0) + 1.0;"
            ),
            // NaN stays NaN.
            Activation::SquaredRelu => {
                module!(
                    "let y = select(x, 0.0, x < 0.0); return y * y;",
                    "return up;"
                )
            }
        }
    }
}

/// Writes `activation(gate) * other_half(up)` to `out`. All have the same length.
pub fn gated(gate: &[f32], up: &[f32], activation: Activation, out: &mut [f32]) {
    run(Gated {
        gate,
        up,
        activation,
        out,
    });
}

/// Replaces each element by `activation(x)`.
pub fn activate(x: &mut [f32], activation: Activation) {
    run(Activate { x, activation });
}

/// `x * sigmoid(x)`
#[inline(always)]
pub(super) fn silu<L: F32x8>(x: L) -> L {
    x.div(exp(L::splat(0.0).sub(x)).add(L::splat(1.0)))
}

#[inline(always)]
fn apply<L: F32x8>(x: L, activation: Activation) -> L {
    let one = L::splat(1.0);
    match activation {
        Activation::Silu => silu(x),
        Activation::Gelu => {
            // sqrt(2 / pi)
            let factor = L::splat(0.797_884_6);
            let cubed = L::splat(0.044_715).mul(x).mul(x).mul(x);
            let y = factor.mul(x.add(cubed));
            L::splat(0.5).mul(x).mul(tanh(y).add(one))
        }
        Activation::QuickGelu => x.div(exp(L::splat(-1.702).mul(x)).add(one)),
        Activation::ClampedSilu => {
            let y = L::splat(LIMIT).min(x);
            y.div(exp(L::splat(-1.702).mul(y)).add(one))
        }
        Activation::SquaredRelu => {
            let y = L::splat(0.0).max(x);
            y.mul(y)
        }
    }
}

#[inline(always)]
fn other_half<L: F32x8>(up: L, activation: Activation) -> L {
    match activation {
        Activation::ClampedSilu => {
            let limited = L::splat(-LIMIT).max(L::splat(LIMIT).min(up));
            limited.add(L::splat(1.0))
        }
        _ => up,
    }
}

struct Gated<'a> {
    gate: &'a [f32],
    up: &'a [f32],
    activation: Activation,
    out: &'a mut [f32],
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        assert!(self.gate.len() == self.out.len() && self.up.len() == self.out.len());
        let (gates, gate_rest) = self.gate.as_chunks::<LANES>();
        let (ups, up_rest) = self.up.as_chunks::<LANES>();
        let (outs, out_rest) = self.out.as_chunks_mut::<LANES>();
        for i in 0..outs.len() {
            let gate = apply(L::from_array(gates[i]), self.activation);
            let up = other_half(L::from_array(ups[i]), self.activation);
            outs[i] = gate.mul(up).to_array();
        }
        let gate = apply(L::load_part(gate_rest), self.activation);
        let up = other_half(L::load_part(up_rest), self.activation);
        gate.mul(up).store_part(out_rest);
    }
}

struct Activate<'a> {
    x: &'a mut [f32],
    activation: Activation,
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let (whole, rest) = self.x.as_chunks_mut::<LANES>();
        for x in whole {
            *x = apply(L::from_array(*x), self.activation).to_array();
        }
        apply(L::load_part(rest), self.activation).store_part(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{
        f32x8::{backends, run_on},
        test_values::{assert_close, wave},
    };

    fn exact(x: f32, activation: Activation) -> f64 {
        let x = f64::from(x);
        match activation {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Gelu => {
                let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
                0.5 * x * (1.0 + y.tanh())
            }
            Activation::QuickGelu => x / (1.0 + (-1.702 * x).exp()),
            Activation::ClampedSilu => {
                let y = x.min(7.0);
                y / (1.0 + (-1.702 * y).exp())
            }
            Activation::SquaredRelu => x.max(0.0).powi(2),
        }
    }

    #[test]
    fn activations_are_exact_to_single_precision_on_all_lanes() {
        let mut gate: Vec<f32> = (-4000..4000).map(|i| i as f32 * 0.005).collect();
        gate.extend([1e4, -1e4, 1e-30, -0.0, 3.0]);
        let up: Vec<f32> = wave(gate.len(), 3).iter().map(|v| 9.0 * v).collect();
        for activation in Activation::ALL {
            let mut seen = Vec::new();
            for backend in backends() {
                let (mut out, mut alone) = (vec![0.0; gate.len()], gate.clone());
                run_on(
                    backend,
                    Gated {
                        gate: &gate,
                        up: &up,
                        activation,
                        out: &mut out,
                    },
                );
                run_on(
                    backend,
                    Activate {
                        x: &mut alone,
                        activation,
                    },
                );
                for (i, x) in gate.iter().enumerate() {
                    let exact = exact(*x, activation);
                    assert_close(alone[i], exact, 1e-6);
                    let up = match activation {
                        Activation::ClampedSilu => f64::from(up[i]).clamp(-7.0, 7.0) + 1.0,
                        _ => f64::from(up[i]),
                    };
                    // Relative to the rounded activation.
                    assert_close(out[i], exact * up, 1e-6 * up.abs().max(1.0));
                }
                seen.push(
                    [out, alone]
                        .concat()
                        .iter()
                        .map(|v| v.to_bits())
                        .collect::<Vec<_>>(),
                );
            }
            assert!(seen.iter().all(|out| *out == seen[0]));
        }
    }

    #[test]
    fn endless_values_do_not_become_numbers() {
        for activation in Activation::ALL {
            let mut x = [f32::NAN, f32::INFINITY];
            activate(&mut x, activation);
            let is_limited = activation == Activation::ClampedSilu && x[1] < 7.0;
            assert!(
                x[0].is_nan() && (x[1] == f32::INFINITY || is_limited),
                "{activation:?}"
            );
        }
    }
}
