//! Functions between the two halves of a feed-forward layer.

use inpage_cpu::lanes::activation;

use crate::kernel::wgsl;

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
}

impl Activation {
    pub(super) fn wgsl(self) -> &'static str {
        match self {
            Activation::Silu => wgsl!("shared/activation/silu"),
            Activation::Gelu => wgsl!("shared/activation/gelu"),
            Activation::QuickGelu => wgsl!("shared/activation/quick_gelu"),
        }
    }

    /// `out = apply(gates) * ups` on the CPU device.
    pub(super) fn on_cpu_gated(self, gates: &[f32], ups: &[f32], out: &mut [f32]) {
        activation::gated(gates, ups, self.on_cpu(), out);
    }

    /// `apply` of each value on the CPU device.
    pub(super) fn apply_on_cpu(self, values: &mut [f32]) {
        activation::activate(values, self.on_cpu());
    }

    fn on_cpu(self) -> activation::Activation {
        match self {
            Activation::Silu => activation::Activation::Silu,
            Activation::Gelu => activation::Activation::Gelu,
            Activation::QuickGelu => activation::Activation::QuickGelu,
        }
    }

    /// The CPU twin of `activate`.
    pub(super) fn apply(self, x: f32) -> f32 {
        match self {
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Gelu => {
                let y = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + y.tanh())
            }
            Activation::QuickGelu => x / (1.0 + (-1.702 * x).exp()),
        }
    }
}
