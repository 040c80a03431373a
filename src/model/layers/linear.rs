//! Norms and linear layers. They choose the op for few or for many tokens.

use burn::{module::Module, tensor::Tensor};

use super::low_rank::LowRank;
use crate::ops::{
    Addends, Finish, Variant,
    layer_norm::layer_norm,
    matmul::matmul,
    matrix::Matrix,
    matvec::{MAX_TOKENS, matvec},
    rms_norm::rms_norm,
};

/// A norm of the residual stream, or of a result before it is added to the stream.
#[derive(Module, Debug)]
pub struct Norm {
    /// `[dim]`
    pub weight: Tensor<1>,
    /// `[dim]`, in layer norms. Without a bias it is an RMS norm.
    pub bias: Option<Tensor<1>>,
    /// Added to the mean square or the variance.
    #[module(skip)]
    pub eps: f32,
    /// The kernels that the tuner chose for the device.
    #[module(skip)]
    pub variant: Variant,
}

impl Norm {
    /// `norm(x)`, `x` `[tokens, dim]`.
    pub fn apply(&self, x: Tensor<2>) -> Tensor<2> {
        match &self.bias {
            Some(bias) => layer_norm(x, self.weight.clone(), bias.clone(), self.eps, self.variant),
            None => rms_norm(x, self.weight.clone(), self.eps, None, self.variant),
        }
    }
}

/// `weight * x + bias`, plus the product of the adapters.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[rows, cols]`
    pub weight: Matrix,
    /// `[rows]`
    pub bias: Option<Tensor<1>>,
    /// Adapters of the weight.
    pub low_rank: Option<LowRank>,
    #[module(skip)]
    pub variant: Variant,
}

impl Linear {
    /// `finish(weight * norm(x) + bias + delta)`, `x` `[tokens, cols]`.
    pub fn normed(&self, x: Tensor<2>, norm: Option<&Norm>, finish: Finish) -> Tensor<2> {
        match norm {
            // The kernel computes an RMS norm along with the product.
            Some(norm) if norm.bias.is_none() && x.dims()[0] <= MAX_TOKENS => {
                let norm = Some((norm.weight.clone(), norm.eps));
                let addends = self.addends(&x, norm.clone(), None);
                matvec(x, norm, &self.weight, addends, finish, self.variant)
            }
            Some(norm) => self.of(norm.apply(x), finish, None),
            None => self.of(x, finish, None),
        }
    }

    /// `weight * x + bias + residual`, `x` `[tokens, cols]`, `residual` `[tokens, rows]`.
    pub fn plus(&self, x: Tensor<2>, residual: Tensor<2>) -> Tensor<2> {
        self.of(x, Finish::Plain, Some(residual))
    }

    /// `finish(weight * x + bias + delta) + residual`, `x` `[tokens, cols]`.
    fn of(&self, x: Tensor<2>, finish: Finish, residual: Option<Tensor<2>>) -> Tensor<2> {
        let addends = self.addends(&x, None, residual);
        if x.dims()[0] <= MAX_TOKENS {
            return matvec(x, None, &self.weight, addends, finish, self.variant);
        }
        matmul(x, &self.weight, addends, finish, self.variant)
    }

    /// The terms that are added to the products with `norm(x)`.
    fn addends(
        &self,
        x: &Tensor<2>,
        norm: Option<(Tensor<1>, f32)>,
        residual: Option<Tensor<2>>,
    ) -> Addends {
        let low_rank = self.low_rank.as_ref();
        Addends {
            bias: self.bias.clone(),
            delta: low_rank.map(|it| it.delta(x.clone(), norm, self.variant)),
            residual,
        }
    }
}

/// How a result is added to the residual stream.
#[derive(Module, Debug)]
pub struct Join {
    /// Norm of the result.
    pub norm: Option<Norm>,
    /// Norm of the sum, in layers that normalize the residual stream itself.
    pub sum_norm: Option<Norm>,
    /// Factor of a result without norm.
    #[module(skip)]
    pub scale: f32,
}

impl Join {
    /// `sum_norm(residual + norm(linear(x)))`, `x` `[tokens, cols]`, `residual` `[tokens, rows]`.
    pub fn onto(&self, residual: Tensor<2>, linear: &Linear, x: Tensor<2>) -> Tensor<2> {
        let finish = match self.scale {
            1.0 => Finish::Plain,
            scale => Finish::Scale(scale),
        };
        let sum = match &self.norm {
            Some(norm) => {
                let result = linear.of(x, finish, None);
                let weight = norm.weight.clone();
                rms_norm(result, weight, norm.eps, Some(residual), norm.variant)
            }
            None => linear.of(x, finish, Some(residual)),
        };
        match &self.sum_norm {
            Some(norm) => norm.apply(sum),
            None => sum,
        }
    }
}
