//! What happens to a product before it is written: a bias, a finish, the residual stream.

use super::{activation::Activation, kernel::Kernel, shader};

/// What happens to a product with its bias.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Finish {
    /// Nothing.
    #[default]
    Plain,
    /// It is multiplied.
    Scale(f32),
    /// It is multiplied by `scale`, and then becomes `cap * tanh(value / cap)`.
    SoftCap {
        /// The factor.
        scale: f32,
        /// The bound.
        cap: f32,
    },
    /// It is activated.
    Activation(Activation),
}

impl Finish {
    /// Adds the module that finishes, and what it needs.
    pub(super) fn modules(self, kernel: Kernel) -> Kernel {
        match self {
            Finish::Plain => kernel.module(shader::finish::PLAIN),
            Finish::Scale(scale) => kernel
                .constant_f32("OUT_SCALE", scale)
                .module(shader::finish::SCALE),
            Finish::SoftCap { scale, cap } => kernel
                .constant_f32("OUT_SCALE", scale)
                .constant_f32("SOFT_CAP", cap)
                .module(shader::SOFT_CAP)
                .module(shader::finish::SOFT_CAP),
            Finish::Activation(activation) => kernel
                .module(activation.wgsl())
                .module(shader::finish::ACTIVATION),
        }
    }

    /// The twin of `finish`.
    pub(super) fn apply(self, value: f32) -> f32 {
        match self {
            Finish::Plain => value,
            Finish::Scale(scale) => value * scale,
            Finish::SoftCap { scale, cap } => cap * (value * scale / cap).tanh(),
            Finish::Activation(activation) => activation.apply(value),
        }
    }
}

/// What a kernel does with a product.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Store {
    /// It adds a bias.
    pub bias: bool,
    /// What it does then.
    pub finish: Finish,
    /// It adds the residual stream.
    pub residual: bool,
}

impl Store {
    /// Declares the bindings of bias and residual, and adds the modules.
    pub(super) fn modules(self, mut kernel: Kernel) -> Kernel {
        if self.bias {
            kernel = kernel.binding("bias");
        }
        if self.residual {
            kernel = kernel.binding("residual");
        }
        self.finish
            .modules(kernel)
            .module(match (self.bias, self.residual) {
                (false, false) => shader::store::PLAIN,
                (true, false) => shader::store::BIAS,
                (false, true) => shader::store::RESIDUAL,
                (true, true) => shader::store::BIAS_RESIDUAL,
            })
    }
}
