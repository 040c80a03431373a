//! The steps between a product and its output: bias, adapters, finish, residual stream.

use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::{Activation, activate};

use super::op::Maybe;
use crate::kernel::{Kernel, wgsl};

/// A function of a product with its bias.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Finish {
    /// The value is unchanged.
    #[default]
    Plain,
    /// Multiplication by a factor.
    Scale(f32),
    /// Multiplication by `scale`, then `cap * tanh(value / cap)`.
    SoftCap {
        /// The factor.
        scale: f32,
        /// The bound.
        cap: f32,
    },
    /// An activation function.
    Activation(Activation),
}

impl Finish {
    /// Adds the module of the finish and the modules that it needs.
    pub(super) fn modules(self, kernel: Kernel) -> Kernel {
        match self {
            Finish::Plain => kernel.module(wgsl!("shared/finish/plain")),
            Finish::Scale(scale) => kernel
                .constant_f32("OUT_SCALE", scale)
                .module(wgsl!("shared/finish/scale")),
            Finish::SoftCap { scale, cap } => kernel
                .constant_f32("OUT_SCALE", scale)
                .constant_f32("SOFT_CAP", cap)
                .module(wgsl!("shared/soft_cap"))
                .module(wgsl!("shared/finish/soft_cap")),
            Finish::Activation(activation) => kernel
                .module(activation.wgsl())
                .module(wgsl!("shared/finish/activation")),
        }
    }

    /// `finish` of each value on the CPU device.
    pub(super) fn apply_on_cpu(self, values: &mut [f32]) {
        match self {
            Finish::Activation(activation) => activate(values, activation),
            finish => values
                .iter_mut()
                .for_each(|value| *value = finish.apply(*value)),
        }
    }

    /// The CPU twin of `finish`.
    pub(super) fn apply(self, value: f32) -> f32 {
        match self {
            Finish::Plain => value,
            Finish::Scale(scale) => value * scale,
            Finish::SoftCap { scale, cap } => cap * (value * scale / cap).tanh(),
            Finish::Activation(activation) => activation.apply(value),
        }
    }
}

/// The addends of a product.
#[derive(Debug, Clone, Default)]
pub struct Addends {
    /// `[rows]`, before the finish.
    pub bias: Option<Tensor<1>>,
    /// `[tokens, rows]`, before the finish: the adapters' output.
    pub delta: Option<Tensor<2>>,
    /// `[tokens, rows]`, after the finish: the residual stream.
    pub residual: Option<Tensor<2>>,
}

/// The addends on a backend.
#[derive(ExtensionType)]
pub(super) struct AddendTensors<B: Backend> {
    #[extension_type]
    pub(super) bias: Maybe<B>,
    #[extension_type]
    pub(super) delta: Maybe<B>,
    #[extension_type]
    pub(super) residual: Maybe<B>,
}

impl From<Addends> for AddendTensors<Dispatch> {
    fn from(addends: Addends) -> Self {
        Self {
            bias: addends.bias.into(),
            delta: addends.delta.into(),
            residual: addends.residual.into(),
        }
    }
}

impl AddendTensors<Cube> {
    /// The store of a kernel with these addends and a finish.
    pub(super) fn store(&self, finish: Finish) -> Store {
        Store {
            bias: self.bias.as_ref().is_some(),
            delta: self.delta.as_ref().is_some(),
            finish,
            residual: self.residual.as_ref().is_some(),
        }
    }

    /// The buffers for [`Store::modules`].
    pub(super) fn buffers(&self) -> impl Iterator<Item = &CubeTensor> {
        let addends = [&self.bias, &self.delta, &self.residual];
        addends.into_iter().filter_map(Maybe::as_ref)
    }
}

/// The operations of a kernel on a product before it writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Store {
    /// Adds a bias.
    pub bias: bool,
    /// Adds the adapters' output.
    pub delta: bool,
    /// The function of the sum.
    pub finish: Finish,
    /// Adds the residual stream after the finish.
    pub residual: bool,
}

impl Store {
    /// Declares the bindings of the addends and adds the modules.
    pub(super) fn modules(self, mut kernel: Kernel) -> Kernel {
        for (name, is_added, with, without) in [
            (
                "bias",
                self.bias,
                wgsl!("shared/store/bias"),
                wgsl!("shared/store/no_bias"),
            ),
            (
                "delta",
                self.delta,
                wgsl!("shared/store/delta"),
                wgsl!("shared/store/no_delta"),
            ),
            (
                "residual",
                self.residual,
                wgsl!("shared/store/residual"),
                wgsl!("shared/store/no_residual"),
            ),
        ] {
            kernel = match is_added {
                true => kernel.binding(name).module(with),
                false => kernel.module(without),
            };
        }
        self.finish
            .modules(kernel)
            .module(wgsl!("shared/store/store"))
    }

    /// Same as [`Store::modules`], for kernels whose rows are those of one matrix.
    pub(super) fn rows(self, kernel: Kernel) -> Kernel {
        self.modules(kernel)
            .alias("Sum", "f32")
            .module(wgsl!("shared/rows/plain"))
    }
}
