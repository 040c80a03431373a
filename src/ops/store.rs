//! What happens to a product before it is written: a bias, what adapters add, a finish, the residual stream.

use burn::tensor::Tensor;

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

/// What is added to a product.
#[derive(Debug, Clone, Default)]
pub struct Addends {
    /// `[rows]`, before the finish.
    pub bias: Option<Tensor<1>>,
    /// `[tokens, rows]`, before the finish: what adapters make of the inputs.
    pub delta: Option<Tensor<2>>,
    /// `[tokens, rows]`, after the finish: the residual stream.
    pub residual: Option<Tensor<2>>,
}

/// What a kernel does with a product.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Store {
    /// It adds a bias.
    pub bias: bool,
    /// It adds what adapters make of the inputs.
    pub delta: bool,
    /// What it does then.
    pub finish: Finish,
    /// It adds the residual stream.
    pub residual: bool,
}

impl Store {
    /// Declares the bindings of the addends, and adds the modules.
    pub(super) fn modules(self, mut kernel: Kernel) -> Kernel {
        use shader::store;
        for (name, is_added, with, without) in [
            ("bias", self.bias, store::BIAS, store::NO_BIAS),
            ("delta", self.delta, store::DELTA, store::NO_DELTA),
            (
                "residual",
                self.residual,
                store::RESIDUAL,
                store::NO_RESIDUAL,
            ),
        ] {
            kernel = match is_added {
                true => kernel.binding(name).module(with),
                false => kernel.module(without),
            };
        }
        self.finish.modules(kernel).module(store::STORE)
    }
}
